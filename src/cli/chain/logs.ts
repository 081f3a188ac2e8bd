/** `millrace chain logs`: the logs of the nodes of a run, with `--follow` also new lines. */
import { setTimeout as sleepFor } from "node:timers/promises";
import type { LogLine } from "../../chains/index.ts";
import { type Client, isTransient, pathTo } from "../common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor } from "../common/client-command.ts";
import type { Command } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { paint, print, printable, toSeconds } from "../common/output.ts";
import { fetchNodes, type RunNode, withRunHint } from "./api.ts";
import { followRun } from "./follow.ts";

const LINES_PER_CALL = 1_000;
const POLL_MS = 1_000;

export const logs: Command = {
  summary: "Print the logs of the nodes of a run",
  details: `Without NODE, prints the logs of all nodes, in the order in which they started. With --follow, prints new lines
until the run ends.`,
  args: "RUN [NODE]",
  flags: [
    { usage: "--attempt <number>", description: "Only lines of this attempt." },
    { usage: "--follow", description: "Print new lines until the run ends." },
    { usage: "--json", description: "Print each line as JSON, with its node." },
    ...CLIENT_FLAGS,
  ],
  environment: CLIENT_ENVIRONMENT,
  examples: [
    "millrace chain logs 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b --follow",
    "millrace chain logs 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b load --attempt 2",
  ],
  async run(given) {
    const runId = given.text("RUN");
    const node = given.maybeText("NODE");
    const client = clientFor(given);
    const printNew = logPrinter(client, { runId, attempt: given.maybeNumber("--attempt"), json: given.isOn("--json") });
    await withRunHint(client, runId, async () => {
      if (given.isOn("--follow")) await follow(client, runId, node, printNew);
      else if (node !== undefined) await printNew(node);
      else for (const { nodeId } of startedFirst(await fetchNodes(client, runId))) await printNew(nodeId);
    });
    return EXIT.ok;
  },
};

/** Prints the new lines of a node. */
type PrintNew = (nodeId: string) => Promise<void>;

function logPrinter(
  client: Client,
  { runId, attempt, json }: { runId: string; attempt: number | undefined; json: boolean },
): PrintNew {
  const seen = new Map<string, LogLine["id"]>();
  return async (nodeId) => {
    for (let more = true; more; ) {
      const { items } = await client.call<{ items: LogLine[] }>({
        method: "GET",
        path: pathTo`api/v1/runs/${runId}/nodes/${nodeId}/logs`,
        query: { attempt, after: seen.get(nodeId), limit: LINES_PER_CALL },
      });
      for (const line of items) {
        print(json ? JSON.stringify({ nodeId, ...line }) : asText(nodeId, line));
        seen.set(nodeId, line.id);
      }
      more = items.length === LINES_PER_CALL;
    }
  };
}

/** Polls the logs of running nodes, and once more of each node that has changed. */
async function follow(client: Client, runId: string, only: string | undefined, printNew: PrintNew): Promise<void> {
  const running = new Set<string>();
  const changed = new Set<string>();
  function noteChanges(nodes: readonly RunNode[]): void {
    for (const { nodeId, status } of nodes) {
      if (only !== undefined && nodeId !== only) continue;
      changed.add(nodeId);
      if (status === "RUNNING") running.add(nodeId);
      else running.delete(nodeId);
    }
  }
  async function poll(isLast: boolean): Promise<void> {
    const nodes = new Set([...changed, ...running]);
    changed.clear();
    for (const nodeId of nodes) {
      await printNew(nodeId).catch((error: unknown) => {
        if (isLast || !isTransient(error)) throw error;
        changed.add(nodeId);
      });
    }
  }

  const leaving = new AbortController();
  const end = followRun(client, runId, {
    signal: leaving.signal,
    onEvent: ({ event, data }) => event === "nodes" && noteChanges(startedFirst(data)),
    onDisconnect: (sentence) => process.stderr.write(`${printable(sentence)} Trying again.\n`),
  }).then(() => true);
  try {
    for (let isOver = false; !isOver; ) {
      isOver = await Promise.race([end, sleepFor(POLL_MS, false, { ref: false })]);
      await poll(isOver);
    }
  } finally {
    leaving.abort();
    await end.catch(() => undefined);
  }
}

function startedFirst(nodes: readonly RunNode[]): RunNode[] {
  return nodes
    .filter(({ startedAt }) => startedAt !== null)
    .toSorted((a, b) => Date.parse(a.startedAt ?? "") - Date.parse(b.startedAt ?? ""));
}

/** Repeats time and node on each line of a text. */
function asText(nodeId: string, { at, attempt, level, text }: LogLine): string {
  const name = attempt > 1 ? `${nodeId}#${attempt}` : nodeId;
  const head = printable(`${toSeconds(at)} ${name} ${level}`);
  const style = level === "error" ? "red" : level === "warn" ? "yellow" : "dim";
  const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
  return lines.map((line) => `${paint(style, head)} ${printable(line)}`).join("\n");
}
