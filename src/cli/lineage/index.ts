/** `millrace lineage ...`: the lineage of tables, columns and metrics, from OpenLineage events. */
import type { Family } from "../common/command.ts";
import { eventCommands } from "./events.ts";
import { graphs } from "./graph.ts";
import { impact } from "./impact.ts";
import { model } from "./model.ts";
import { neo4j, rebuild } from "./neo4j.ts";
import { replay } from "./replay.ts";
import { search } from "./search.ts";
import { send } from "./send.ts";
import { show } from "./show.ts";
import { stats } from "./stats.ts";
import { tasks } from "./tasks.ts";
import { readiness, tenant, tenants } from "./tenants.ts";

export const lineage: Family = {
  summary: "Send OpenLineage events, and query the lineage of data",
  details: `Every event belongs to a tenant, and so does every asset. An ASSET is given by its full name, as in lists
(\`lake.shop.orders\`), by its short name if that is unique, or by its id.`,
  commands: {
    tenants,
    tenant,
    ...readiness,
    send,
    search,
    show,
    ...graphs,
    impact,
    ...eventCommands,
    replay,
    tasks,
    model,
    stats,
    neo4j,
    "rebuild-neo4j": rebuild,
  },
};
