/** `millrace lineage neo4j` and `rebuild-neo4j`: the projection of the graph to Neo4j, and its rebuild. */

import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../../kernel/errors.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { type RetryPolicy, withRetry } from "../../kernel/work/retry.ts";
import { durationOf, inOneLine } from "../chain/run-text.ts";
import { type Client, isTransient } from "../common/client.ts";
import { clientCommand, serverCommand } from "../common/client-command.ts";
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
  waiting: number;
  oldestSeconds: number;
  lastError: string | null;
  needsRebuild: boolean;
  refused: { tenantId: number; since: string; changes: number; error: string }[];
  rebuild: Rebuild | null;
}

const POLL_MS = 500;
/** A server that is down for longer has also ended the rebuild. */
const RETRY: RetryPolicy = { maxAttempts: 10, baseMs: 500, factor: 2, capMs: 5_000, jitter: 0.5 };
/** The server waits for a Neo4j that does not answer. */
const HEALTH_SECONDS = 30;

const readProjection = (client: Client) =>
  client.call<Projection>({ method: "GET", path: "api/v1/lineage/projection", waitSeconds: HEALTH_SECONDS });

export const neo4j = clientCommand<Projection>({
  summary: "Show the state of the projection to Neo4j, and the last rebuild",
  details: "The exit code is 1 if Neo4j is configured and does not answer, or if its graph needs a rebuild.",
  args: "",
  flags: [],
  examples: ["millrace lineage neo4j"],
  request: () => ({ method: "GET", path: "api/v1/lineage/projection", waitSeconds: HEALTH_SECONDS }),
  show(projection) {
    const { configured, server, error, rebuild: last } = projection;
    if (!configured) return "The graph is not projected to Neo4j: set `lineage.neo4j` in the configuration file.";
    const health = server === null ? `Neo4j does not answer: ${inOneLine(error)}` : `${printable(server)} answers.`;
    return [health, ...stateInWords(projection), ...(last === null ? [] : [rebuildInWords(last)])].join("\n");
  },
  exitCode: ({ configured, server, needsRebuild }) =>
    configured && (server === null || needsRebuild) ? EXIT.failed : EXIT.ok,
});

export const rebuild = serverCommand<Rebuild>({
  summary: "Rebuild the graph in Neo4j from the one in Postgres",
  details: `Needed only if Neo4j has lost data or refused changes: events keep it up to date otherwise. During the rebuild the graph in Neo4j is
incomplete. Waits for the end of the rebuild, and exits with 1 if it failed; Ctrl-C ends the command, not the rebuild.`,
  args: "",
  flags: [
    { usage: "--tenant <id>", description: "Only the graph of this tenant." },
    { usage: "--no-wait", description: "Do not wait for its end." },
  ],
  examples: ["millrace lineage rebuild-neo4j", "millrace lineage rebuild-neo4j --tenant 7"],
  async execute(client, given) {
    const started = await client.call<Rebuild>({
      method: "POST",
      path: "api/v1/lineage/projection:rebuild",
      body: { tenantId: given.maybeNumber("--tenant") },
    });
    if (given.isOn("--no-wait")) return started;
    const progress = createProgress({ isQuiet: given.isOn("--json") });
    try {
      return await follow(client, started, progress);
    } finally {
      progress.end();
    }
  },
  show: rebuildInWords,
  exitCode: ({ status }) => (status === "FAILED" ? EXIT.failed : EXIT.ok),
});

function stateInWords({ waiting, oldestSeconds, lastError, needsRebuild, refused }: Projection): string[] {
  const lines: string[] = [];
  if (waiting > 0) {
    const why = lastError === null ? "" : ` ${inOneLine(lastError)}`;
    lines.push(`Changes that wait: ${waiting}, the oldest for ${Math.round(oldestSeconds)} s.${why}`);
  }
  for (const { tenantId, since, changes, error } of refused) {
    lines.push(
      `Tenant ${tenantId}: ${counted(changes, "change")} refused since ${toSeconds(since)}: ${inOneLine(error)}`,
    );
  }
  if (needsRebuild) lines.push("Its graph is incomplete until `millrace lineage rebuild-neo4j` has rebuilt it.");
  return lines;
}

async function follow(client: Client, started: Rebuild, progress: Progress): Promise<Rebuild> {
  for (let last = started; ; ) {
    if (last.status !== "RUNNING") return last;
    progress.update(
      `${counted(last.nodes, "node")} and ${counted(last.edges, "edge")} written, at tenant ${last.currentTenantId ?? "?"}`,
    );
    await sleep(POLL_MS);
    const { rebuild: seen } = await withRetry(() => readProjection(client), { policy: RETRY, retryOn: isTransient });
    if (seen?.id !== started.id) {
      throw new OperatorError(
        `The server does not know this rebuild. If it was restarted, the rebuild has ended early: start it again. If \
several servers share one address, name the one that rebuilds: \`millrace lineage neo4j --url ...\`.`,
        EXIT.failed,
      );
    }
    last = seen;
  }
}

function rebuildInWords(last: Rebuild): string {
  const { status, tenantId, tenants, nodes, edges, startedAt, error } = last;
  const what = tenantId === null ? "The graph" : `The graph of tenant ${tenantId}`;
  const done = [counted(tenants, "tenant"), counted(nodes, "node"), counted(edges, "edge")].join(", ");
  const took = durationOf(last, Date.now());
  switch (status) {
    case "RUNNING":
      return `${what} in Neo4j has been rebuilding since ${toSeconds(startedAt)}: ${done} so far.`;
    case "SUCCESS":
      return `${what} in Neo4j was rebuilt: ${done}, in ${took}.`;
    case "FAILED":
      return `${what} in Neo4j could not be rebuilt: ${inOneLine(error)}\nIt is incomplete until a rebuild succeeds; this one ended after ${took} and ${done}.`;
  }
}
