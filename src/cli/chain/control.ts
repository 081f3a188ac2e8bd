/** The commands of `millrace chain` that control a run: stop, resume, retry, complete. */

import { OperatorError } from "../../kernel/errors.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { pathTo, type Request } from "../common/client.ts";
import { type ClientCommand, serverCommand } from "../common/client-command.ts";
import type { Command, Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, table } from "../common/output.ts";
import { type NodeStatus, type RunStatus, withRunHint } from "./api.ts";
import { followRun } from "./follow.ts";
import { parseJsonFlag } from "./start.ts";

const REASON: Flag = { usage: "--reason <text>", description: "The reason, for the history of the run." };

interface RunReply {
  runId: string;
  status: RunStatus;
}

const showRun = ({ runId, status }: RunReply) => `Run ${printable(runId)}: ${status}.`;

const stop = serverCommand<RunReply>({
  summary: "Stop a run",
  details: `Waiting nodes are stopped at once, running ones are signalled to end. A stopped run can be resumed. With --wait the
command returns when the run is stopped, and exits with 3 if the run succeeded or failed before that.`,
  args: "RUN",
  flags: [{ usage: "--wait", description: "Wait until the run is stopped." }, REASON],
  examples: ["millrace chain stop 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b --wait"],
  async execute(client, given) {
    const runId = given.text("RUN");
    const request: Request = {
      method: "POST",
      path: pathTo`api/v1/runs/${runId}:stop`,
      body: { reason: given.maybeText("--reason") },
    };
    const reply = await withRunHint(client, runId, async () => client.call<RunReply>(request));
    if (!given.isOn("--wait")) return reply;
    return { ...reply, status: await followRun(client, runId, { signal: new AbortController().signal }) };
  },
  show: showRun,
  exitCode: ({ status }) => (status === "SUCCESS" || status === "FAILED" ? EXIT.wrongState : EXIT.ok),
});

const resume = runCommand<RunReply>({
  summary: "Resume a stopped run",
  args: "RUN",
  flags: [],
  examples: ["millrace chain resume 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b"],
  request: (given) => ({ method: "POST", path: pathTo`api/v1/runs/${given.text("RUN")}:resume` }),
  show: showRun,
});

interface Retried extends RunReply {
  nodes: { nodeId: string; from: NodeStatus; to: NodeStatus }[];
}

const retry = runCommand<Retried>({
  summary: "Retry the failed nodes of a run, or one node",
  details: `Without NODE, runs all failed and stopped nodes again, and their skipped descendants; with NODE, that node and its
skipped or stopped descendants.`,
  args: "RUN [NODE]",
  flags: [
    { usage: "--downstream", description: "Also run the succeeded descendants of NODE again." },
    { usage: "--dry-run", description: "Only show what would run." },
    REASON,
  ],
  examples: [
    "millrace chain retry 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b --dry-run",
    "millrace chain retry 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b load --reason 'the table is there now'",
  ],
  request: retryRequest,
  show({ nodes, ...reply }, given) {
    const moves = table(
      ["NODE", "IS", "BECOMES"],
      nodes.map(({ nodeId, from, to }) => [nodeId, from, to]),
    );
    if (given.isOn("--dry-run")) return nodes.length === 0 ? "Nothing would run." : moves;
    const what = given.maybeText("NODE") ?? counted(nodes.length, "node");
    return `Run ${printable(reply.runId)}: retrying ${printable(what)}.`;
  },
});

/** A command with one call for a RUN. */
function runCommand<Reply>({ request, ...command }: ClientCommand<Reply>): Command {
  return serverCommand<Reply>({
    ...command,
    execute: async (client, given) => withRunHint(client, given.text("RUN"), async () => client.call(request(given))),
  });
}

function retryRequest(given: Given): Request {
  const run = given.text("RUN");
  const node = given.maybeText("NODE");
  const downstream = given.isOn("--downstream") || undefined;
  if (node === undefined && downstream) {
    throw new OperatorError("--downstream needs a NODE: write it after the run.", EXIT.usage);
  }
  return {
    method: "POST",
    path: node === undefined ? pathTo`api/v1/runs/${run}:retry` : pathTo`api/v1/runs/${run}/nodes/${node}:retry`,
    query: { downstream, dryRun: given.isOn("--dry-run") || undefined },
    body: { reason: given.maybeText("--reason") },
  };
}

const complete = runCommand<{ runId: string; nodeId: string; status: NodeStatus }>({
  summary: "Mark a node as successful, so that its children can run",
  args: "RUN NODE",
  flags: [{ usage: "--artifact <json>", description: "The artifact of the node." }, REASON],
  examples: [
    `millrace chain complete 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b load --artifact '{"rows":12}' --reason 'loaded by hand'`,
  ],
  request(given) {
    const artifactJson = given.maybeText("--artifact");
    if (artifactJson !== undefined) parseJsonFlag("--artifact", artifactJson);
    return {
      method: "POST",
      path: pathTo`api/v1/runs/${given.text("RUN")}/nodes/${given.text("NODE")}:complete`,
      body: { artifactJson, reason: given.maybeText("--reason") },
    };
  },
  show: ({ runId, nodeId, status }) => `${printable(nodeId)} of run ${printable(runId)}: ${status}.`,
});

export const control = { stop, resume, retry, complete };
