/** The commands of `millrace pipeline` that change the status of a shard, or of a whole file in event-ingest. */

import { OperatorError } from "../../kernel/errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { pathTo, type Request } from "../common/client.ts";
import { clientCommand } from "../common/client-command.ts";
import type { Command, Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable } from "../common/output.ts";

/** The only stage of whole files. */
const WHOLE_FILE_STAGE = "event-ingest";

const FLAGS: readonly Flag[] = [
  { usage: "--fence <fence>", description: "The fence that the claim returned; required to finish a claimed item." },
  {
    usage: "--worker <name>",
    description: "The name of the worker. A start that is repeated by the same worker succeeds.",
  },
  { usage: "--error <text>", description: "Why it failed." },
];

export const moves = {
  start: move("start", "Start a shard; exactly one caller wins", ["shard-splitter orders.csv 3 --worker w1"]),
  done: move("done", "Mark a shard, or a file's event-ingest, as done", [
    "event-ingest orders.csv",
    "shard-worker orders.csv 3 --fence 1042",
  ]),
  fail: move("fail", "Mark a shard, or a file's event-ingest, as failed", [
    'shard-worker orders.csv 3 --fence 1042 --error "no such table"',
  ]),
  retry: move("retry", "Put a failed shard back into its queue", [
    "shard-worker orders.csv 3",
    "event-ingest orders.csv",
  ]),
};

type Moved = { status: string } | { updated_rows: number };

function move(transition: string, summary: string, examples: readonly string[]): Command {
  return clientCommand<Moved>({
    summary,
    details: `${WHOLE_FILE_STAGE} concerns the whole file and takes no SHARD; every other stage needs one. Repeating the command
changes nothing and succeeds. A change that the present status does not allow exits with 3.`,
    args: "STAGE FILE [SHARD]",
    flags: FLAGS,
    examples: examples.map((example) => `millrace pipeline ${transition} ${example}`),
    request: (given) => moveRequest(transition, given),
    show: (reply, given) =>
      "status" in reply
        ? `${nameOf(given)}: ${reply.status}.`
        : `${nameOf(given)}: ${counted(reply.updated_rows, "shard")} changed.`,
  });
}

function moveRequest(transition: string, given: Given): Request {
  const stage = given.text("STAGE");
  const shard = given.maybeNumber("SHARD");
  if (stage === WHOLE_FILE_STAGE && shard !== undefined) {
    throw new OperatorError(`${WHOLE_FILE_STAGE} concerns the whole file: leave out the shard.`, EXIT.usage);
  }
  if (stage !== WHOLE_FILE_STAGE && shard === undefined) {
    const hint = didYouMean(stage, [WHOLE_FILE_STAGE]);
    throw new OperatorError(`SHARD is missing: write the number of the shard after the file name.${hint}`, EXIT.usage);
  }
  return {
    method: "POST",
    path: pathTo`api/v1/pipeline/stages/${stage}/${transition}`,
    body: {
      filename: given.text("FILE"),
      shard,
      fence: given.maybeText("--fence"),
      worker: given.maybeText("--worker"),
      error: given.maybeText("--error"),
    },
  };
}

function nameOf(given: Given): string {
  const shard = given.maybeText("SHARD");
  return printable(`${given.text("STAGE")} of ${given.text("FILE")}${shard === undefined ? "" : `, shard ${shard}`}`);
}
