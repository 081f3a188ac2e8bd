/** `millrace lineage neo4j` and `rebuild-neo4j`: the graph's projection to Neo4j, and making it anew. */
import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../../kernel/errors.ts";
import { type RetryPolicy, withRetry } from "../../kernel/work/retry.ts";
import { durationOf, inOneLine } from "../chain/words.ts";
import { type Client, mayPass } from "../common/client.ts";
import { clientCommand, talkingCommand } from "../common/client-command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, toSeconds } from "../common/output.ts";
import { createProgress, type Progress } from "../common/progress.ts";

interface Rebuild {
  id: string;
  status: "RUNNING" | "SUCCESS" | "FAILED";
  tenantId: number | null;
  startedAt: string;
  endedAt: string | null;
  currentTenantId: number | null;
  tenants: number;
  nodes: number;
  edges: number;
  error: string | null;
}

interface Projection {
  configured: boolean;
  server: string | null;
  error: string | null;
  rebuild: Rebuild | null;
}

const LOOK_EVERY_MS = 500;
/** A server that is away for longer has ended the rebuild as well. */
const AWAY: RetryPolicy = { maxAttempts: 10, baseMs: 500, factor: 2, capMs: 5_000, jitter: 0.5 };
/** A Neo4j that does not answer keeps ours waiting. */
const HEALTH_SECONDS = 30;

const look = (client: Client) =>
  client.call<Projection>({ method: "GET", path: "api/v1/lineage/projection", waitSeconds: HEALTH_SECONDS });

export const neo4j = clientCommand<Projection>({
  summary: "Show whether the graph is projected to Neo4j, and how the last rebuild went",
  details: "The exit code is 1 if Neo4j is configured and does not answer.",
  args: "",
  flags: [],
  examples: ["millrace lineage neo4j"],
  request: () => ({ method: "GET", path: "api/v1/lineage/projection", waitSeconds: HEALTH_SECONDS }),
  show({ configured, server, error, rebuild: last }) {
    if (!configured)
      return "The graph is not projected to Neo4j: `lineage.neo4j` in the configuration file names no server.";
    const health = server === null ? `Neo4j does not answer: ${inOneLine(error)}` : `${printable(server)} answers.`;
    return last === null ? health : `${health}\n${rebuildInWords(last)}`;
  },
  exitCode: ({ configured, server }) => (configured && server === null ? EXIT.failed : EXIT.ok),
});

export const rebuild = talkingCommand<Rebuild>({
  summary: "Make the graph in Neo4j anew from the one in Postgres",
  details: `Needed only after Neo4j has lost something: events keep it up to date by themselves. Until it has ended, whoever reads
there sees a graph with gaps. Follows the rebuild to its end, and exits with 1 if it failed; Ctrl-C ends the following, not the
rebuild.`,
  args: "",
  flags: [
    { usage: "--tenant <id>", description: "Only the graph of this tenant." },
    { usage: "--no-wait", description: "Do not wait for its end." },
  ],
  examples: ["millrace lineage rebuild-neo4j", "millrace lineage rebuild-neo4j --tenant 7"],
  async talk(client, given) {
    const begun = await client.call<Rebuild>({
      method: "POST",
      path: "api/v1/lineage/projection:rebuild",
      body: { tenantId: given.maybeNumber("--tenant") },
    });
    if (given.isOn("--no-wait")) return begun;
    const progress = createProgress({ isQuiet: given.isOn("--json") });
    try {
      return await follow(client, begun, progress);
    } finally {
      progress.end();
    }
  },
  show: rebuildInWords,
  exitCode: ({ status }) => (status === "FAILED" ? EXIT.failed : EXIT.ok),
});

async function follow(client: Client, begun: Rebuild, progress: Progress): Promise<Rebuild> {
  for (let last = begun; ; ) {
    if (last.status !== "RUNNING") return last;
    progress.tell(`${last.nodes} nodes and ${last.edges} edges written, at tenant ${last.currentTenantId ?? "?"}`);
    await sleep(LOOK_EVERY_MS);
    const { rebuild: seen } = await withRetry(() => look(client), { policy: AWAY, retryOn: mayPass });
    if (seen?.id !== begun.id) {
      throw new OperatorError(
        `The server that answers now does not know of this rebuild. If it was started again, the rebuild has ended early: \
begin anew. If several share one address, ask the one that rebuilds: \`millrace lineage neo4j --url ...\`.`,
        EXIT.failed,
      );
    }
    last = seen;
  }
}

function rebuildInWords(last: Rebuild): string {
  const { status, tenantId, tenants, nodes, edges, startedAt, error } = last;
  const what = tenantId === null ? "The graph" : `The graph of tenant ${tenantId}`;
  const done = `${tenants} ${tenants === 1 ? "tenant" : "tenants"}, ${nodes} nodes, ${edges} edges`;
  const took = durationOf(last, Date.now());
  switch (status) {
    case "RUNNING":
      return `${what} in Neo4j is being rebuilt since ${toSeconds(startedAt)}: ${done} so far.`;
    case "SUCCESS":
      return `${what} in Neo4j was rebuilt: ${done}, in ${took}.`;
    case "FAILED":
      return `${what} in Neo4j could not be rebuilt: ${inOneLine(error)}\nIt has gaps until a rebuild succeeds; this one ended after ${took} and ${done}.`;
  }
}
