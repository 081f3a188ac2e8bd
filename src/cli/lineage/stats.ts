/** `millrace lineage stats`: the numbers of assets, events and tasks of a tenant. */
import { serverCommand } from "../common/client-command.ts";
import { indent, pairs, sections } from "../common/help.ts";
import { table, toSeconds } from "../common/output.ts";
import { callTenant, TENANT_FLAG } from "./api.ts";

interface Statistics {
  assets: Record<string, number>;
  edges: number;
  events: { last24Hours: number; last7Days: number; newest: string | null; buffered: number; dead: number };
  tasks: { type: string; status: string; count: number }[];
  /** A count equal to this limit means: at least this many. */
  countMax: number;
}

export const stats = serverCommand<Statistics>({
  summary: "Show how many assets, edges, events and tasks a tenant has",
  details: "The numbers are up to half a minute old.",
  args: "",
  flags: [TENANT_FLAG],
  examples: ["millrace lineage stats", "millrace lineage stats --tenant 7 --json | jq .events.dead"],
  execute: async (client, given) => callTenant<Statistics>(client, given, { method: "GET", path: "statistics" }),
  show({ assets, edges, events, tasks, countMax }) {
    const some = (count: number) => `${count}${count >= countMax ? " or more" : ""}`;
    const kinds = Object.entries(assets).filter(([, count]) => count > 0);
    const newest = events.newest === null ? "" : `, the newest at ${toSeconds(events.newest)}`;
    return sections([
      [
        "Assets",
        kinds.length === 0
          ? "  None yet."
          : `${pairs(kinds.map(([kind, count]) => [kind, some(count)]))}\n  and ${some(edges)} ${edges === 1 ? "edge" : "edges"}`,
      ],
      [
        "Events",
        indent([
          `${events.last24Hours} in 24 hours, ${events.last7Days} in 7 days${newest}`,
          ...(events.buffered > 0 ? [`${some(events.buffered)} waiting for the tenant to be READY`] : []),
          ...(events.dead > 0 ? [`${some(events.dead)} could not be applied: \`millrace lineage dead-letters\``] : []),
        ]),
      ],
      [
        "Tasks",
        tasks.length === 0
          ? ""
          : table(
              ["TYPE", "STATUS", "TASKS"],
              tasks.map(({ type, status, count }) => [type, status, some(count)]),
            ),
      ],
    ]);
  },
});
