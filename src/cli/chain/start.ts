/** `millrace chain start`: begins a run, and follows it if asked to. */
import { OperatorError } from "../../kernel/errors.ts";
import { type Client, pathTo } from "../common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor } from "../common/client-command.ts";
import type { Command, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { print, printable } from "../common/output.ts";
import { chainIdOf } from "./api.ts";
import { WATCH_DETAILS, watchRun } from "./watch.ts";

export const start: Command = {
  summary: "Start a run of a chain",
  details: `Prints the id of the run. NAME is the chain's name or id. With an idempotency key the same start can be repeated:
it answers with the run that is there already.

With --watch the run is followed until it ends. ${WATCH_DETAILS}`,
  args: "NAME",
  flags: [
    { usage: "--params <json>", description: "What the nodes read as ${params...}: an object." },
    { usage: "--op-time <time>", description: "The time that the run is about, such as 20250101." },
    { usage: "--priority <number>", description: "Runs with a smaller one go first (default 0); it may be negative." },
    { usage: "--idempotency-key <key>", description: "Start once, however often this is called." },
    { usage: "--watch", description: "Follow the run until it ends, and exit with its result." },
    { usage: "--json", description: "Print the server's reply as JSON; with --watch it is the first of the events." },
    ...CLIENT_FLAGS,
  ],
  environment: CLIENT_ENVIRONMENT,
  examples: [
    "millrace chain start daily --op-time 20250101 --watch",
    `millrace chain start daily --params '{"region":"eu"}' --idempotency-key daily-20250101-eu`,
  ],
  async run(given) {
    const json = given.isOn("--json");
    const params = paramsOf(given);
    const client = clientFor(given);
    const reply = await begin(client, given, params);
    const isWatched = given.isOn("--watch");
    // Who reads the events finds the reply in their shape.
    const told = isWatched ? { event: "start", data: reply } : reply;
    print(json ? JSON.stringify(told) : printable(reply.runId));
    return isWatched ? watchRun(client, reply.runId, { json }) : EXIT.ok;
  },
};

async function begin(client: Client, given: Given, params: unknown): Promise<{ runId: string }> {
  const chainId = await chainIdOf(client, given.text("NAME"));
  const key = given.maybeText("--idempotency-key");
  return client.call<{ runId: string }>({
    method: "POST",
    path: pathTo`api/v1/chains/${chainId}:start`,
    headers: key === undefined ? {} : { "idempotency-key": key },
    body: { params, opTime: given.maybeText("--op-time"), priority: priorityOf(given) },
  });
}

function paramsOf(given: Given): unknown {
  const text = given.maybeText("--params");
  return text === undefined ? undefined : parseJsonFlag("--params", text);
}

function priorityOf(given: Given): number | undefined {
  const text = given.maybeText("--priority");
  if (text === undefined || /^-?\d{1,9}$/.test(text)) return text === undefined ? undefined : Number(text);
  throw new OperatorError(`--priority is \`${text}\`. Accepted: a whole number.`, EXIT.usage);
}

/** The value of a flag that is written as JSON. */
export function parseJsonFlag(flag: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new OperatorError(`${flag} is \`${text}\`. Accepted: JSON, such as '{"region":"eu"}'.`, EXIT.usage);
  }
}
