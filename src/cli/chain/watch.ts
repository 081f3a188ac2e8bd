/** `millrace chain watch` and `show`: a run live, and a run as it is now. */

import type { Client } from "../common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor, serverCommand } from "../common/client-command.ts";
import type { Command } from "../common/command.ts";
import { EXIT, INTERRUPTED } from "../common/exit-codes.ts";
import { hasColours, printable } from "../common/output.ts";
import { stopSignals } from "../common/stop-signals.ts";
import { fetchNodes, fetchRun, type Run, type RunNode, type RunStatus, withRunHint } from "./api.ts";
import { followRun } from "./follow.ts";
import { frame, LEGEND } from "./frame.ts";
import { drawnView, jsonView, linesView, type View } from "./views.ts";

/** For the help of all commands that watch a run. */
export const WATCH_DETAILS = `On a terminal the run is drawn as a tree of its nodes: each below its first parent, with its state, duration,
attempts and error. Otherwise each change is one line of text. Lost connections are re-established.

Symbols: ${LEGEND}.

Exits with 0 if the run succeeds, with ${EXIT.failed} if it fails and with ${EXIT.runStopped} if it is stopped. Ctrl-C ends the
command, not the run, and exits with ${INTERRUPTED}.`;

const watch: Command = {
  summary: "Follow a run until it ends, and exit with its result",
  details: WATCH_DETAILS,
  args: "RUN",
  flags: [{ usage: "--json", description: "Print each event of the server as a line of JSON." }, ...CLIENT_FLAGS],
  environment: CLIENT_ENVIRONMENT,
  examples: [
    "millrace chain watch 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b",
    "millrace chain watch 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b --json | jq -c 'select(.event == \"nodes\") | .data[]'",
  ],
  run: async (given) => watchRun(clientFor(given), given.text("RUN"), { json: given.isOn("--json") }),
};

const show = serverCommand<{ run: Run; nodes: RunNode[] }>({
  summary: "Show a run and its nodes",
  details: `Symbols: ${LEGEND}.`,
  args: "RUN",
  flags: [],
  examples: ["millrace chain show 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b"],
  async execute(client, given) {
    const runId = given.text("RUN");
    const work = async () => Promise.all([fetchRun(client, runId), fetchNodes(client, runId)]);
    const [run, nodes] = await withRunHint(client, runId, work);
    return { run, nodes };
  },
  show: ({ run, nodes }) =>
    frame({
      run,
      nodes,
      now: Date.now(),
      width: process.stdout.columns || Number.POSITIVE_INFINITY,
      height: Number.POSITIVE_INFINITY,
      colour: hasColours(),
    }).join("\n"),
});

export const watching = { watch, show };

/** Returns the exit code. */
export async function watchRun(client: Client, runId: string, { json }: { json: boolean }): Promise<number> {
  const view = viewFor(json);
  const stopping = stopSignals(() => view.close?.());
  try {
    const status = await withRunHint(client, runId, async () => followInView(client, runId, view, stopping));
    return status === "SUCCESS" ? EXIT.ok : status === "STOPPED" ? EXIT.runStopped : EXIT.failed;
  } catch (error) {
    if (!stopping.aborted) throw error;
  } finally {
    view.close?.();
  }
  const name = printable(runId);
  process.stderr.write(`Run ${name} is still running. Follow it again with \`millrace chain watch ${name}\`.\n`);
  return INTERRUPTED;
}

function viewFor(json: boolean): View {
  if (json) return jsonView();
  const drawable = process.stdout.isTTY && process.env["TERM"] !== "dumb";
  return drawable ? drawnView(process.stdout) : linesView();
}

/** Updates the state of the run from events, and notifies the view. */
async function followInView(client: Client, runId: string, view: View, signal: AbortSignal): Promise<RunStatus> {
  let run: Run | undefined;
  const nodes = new Map<string, RunNode>();
  return followRun(client, runId, {
    signal,
    onEvent(event) {
      view.onEvent?.(event);
      const changed = event.event === "nodes" ? event.data : [];
      for (const node of changed) nodes.set(node.nodeId, node);
      if (event.event === "run") run = event.data;
      if (run) view.onChange?.({ run, nodes }, changed);
    },
    onDisconnect: (sentence) => view.onDisconnect(sentence),
    onReconnect: () => view.onReconnect?.(),
  });
}
