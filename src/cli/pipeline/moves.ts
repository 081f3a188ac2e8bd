/** The commands of `millrace pipeline` that move a shard, or in event-ingest a whole file, from one status to the next. */
import { OperatorError } from "../../kernel/errors.ts";
import { pathTo, type Request } from "../common/client.ts";
import { clientCommand } from "../common/client-command.ts";
import type { Command, Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable } from "../common/output.ts";

/** The one stage that a file goes through as a whole. */
const WHOLE_FILE_STAGE = "event-ingest";

const FLAGS: readonly Flag[] = [
  { usage: "--fence <fence>", description: "What the claim returned; a claimed item is finished only with it." },
  { usage: "--worker <name>", description: "Who you are. A start that is repeated by the same worker succeeds." },
  { usage: "--error <text>", description: "Why it failed, for people." },
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
    details: `${WHOLE_FILE_STAGE} is about the whole file and takes no SHARD; every other stage needs one. Saying the same again
changes nothing and succeeds. A move that the present status does not allow exits with 3.`,
    args: "STAGE FILE [SHARD]",
    flags: FLAGS,
    examples: examples.map((example) => `millrace pipeline ${transition} ${example}`),
    request: (given) => moveRequest(transition, given),
    show: (reply, given) =>
      "status" in reply
        ? `${nameOf(given)}: ${reply.status}.`
        : `${nameOf(given)}: ${reply.updated_rows} ${reply.updated_rows === 1 ? "shard" : "shards"} changed.`,
  });
}

function moveRequest(transition: string, given: Given): Request {
  const stage = given.text("STAGE");
  const shard = given.maybeNumber("SHARD");
  if (stage === WHOLE_FILE_STAGE && shard !== undefined) {
    throw new OperatorError(`${WHOLE_FILE_STAGE} is about the whole file: leave out the shard.`, EXIT.usage);
  }
  if (stage !== WHOLE_FILE_STAGE && shard === undefined) {
    throw new OperatorError("SHARD is missing: say behind the file's name which of its shards is meant.", EXIT.usage);
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
