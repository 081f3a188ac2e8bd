/** `millrace chain watch` and `show`: a run as it goes on, and as it stands. */

import type { Client } from "../common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor, talkingCommand } from "../common/client-command.ts";
import type { Command } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { hasColours, printable } from "../common/output.ts";
import { stopSignals } from "../common/stop-signals.ts";
import { aboutRun, fetchNodes, fetchRun, type Run, type RunNode, type RunStatus } from "./api.ts";
import { followRun } from "./follow.ts";
import { frame, LEGEND } from "./frame.ts";
import { drawnView, jsonView, linesView, type View } from "./views.ts";

/** As a shell reports a command that Ctrl-C has ended. */
const INTERRUPTED = 130;

/** What the exit code says, for the help of all commands that watch. */
export const WATCH_DETAILS = `On a terminal the run is drawn as a tree of its nodes: each below the first node that it waits for, with its
state, its time, its attempts and its error in a line. Elsewhere each change is one line of text. Lost connections are
taken up again.

Signs: ${LEGEND}.

Exits with 0 when the run succeeds, with ${EXIT.failed} when it fails and with ${EXIT.runStopped} when it is stopped. Ctrl-C ends the
watching, not the run, and exits with ${INTERRUPTED}.`;

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

const show = talkingCommand<{ run: Run; nodes: RunNode[] }>({
  summary: "Show a run and its nodes as they stand",
  details: `Signs: ${LEGEND}.`,
  args: "RUN",
  flags: [],
  examples: ["millrace chain show 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b"],
  async talk(client, given) {
    const runId = given.text("RUN");
    const work = async () => Promise.all([fetchRun(client, runId), fetchNodes(client, runId)]);
    const [run, nodes] = await aboutRun(client, runId, work);
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

/** Answers the exit code. */
export async function watchRun(client: Client, runId: string, { json }: { json: boolean }): Promise<number> {
  const view = viewFor(json);
  const stopping = stopSignals(() => view.close?.());
  try {
    const status = await aboutRun(client, runId, async () => followInView(client, runId, view, stopping));
    return status === "SUCCESS" ? EXIT.ok : status === "STOPPED" ? EXIT.runStopped : EXIT.failed;
  } catch (error) {
    if (!stopping.aborted) throw error;
  } finally {
    view.close?.();
  }
  const name = printable(runId);
  process.stderr.write(`Run ${name} goes on. Follow it again with \`millrace chain watch ${name}\`.\n`);
  return INTERRUPTED;
}

function viewFor(json: boolean): View {
  if (json) return jsonView();
  const drawable = process.stdout.isTTY && process.env["TERM"] !== "dumb";
  return drawable ? drawnView(process.stdout) : linesView();
}

/** Keeps what is known of the run up to date and tells the view what changed. */
async function followInView(client: Client, runId: string, view: View, signal: AbortSignal): Promise<RunStatus> {
  let run: Run | undefined;
  const nodes = new Map<string, RunNode>();
  return followRun(client, runId, {
    signal,
    onEvent(news) {
      view.onEvent?.(news);
      const changed = news.event === "nodes" ? news.data : [];
      for (const node of changed) nodes.set(node.nodeId, node);
      if (news.event === "run") run = news.data;
      if (run) view.onChange?.({ run, nodes }, changed);
    },
    onAway: (sentence) => view.onAway(sentence),
    onBack: () => view.onBack?.(),
  });
}
