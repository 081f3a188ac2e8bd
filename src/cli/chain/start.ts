/** `millrace chain start`: starts a run, and with `--watch` follows it. */
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
  details: `Prints the id of the run. NAME is the chain's name or id. With an idempotency key, repeating the start
returns the existing run.

With --watch the command follows the run until it ends. ${WATCH_DETAILS}`,
  args: "NAME",
  flags: [
    {
      usage: "--params <json>",
      description: "The `params` of the run, a JSON object; nodes read them as ${params...}.",
    },
    { usage: "--op-time <time>", description: "The opTime of the run, such as 20250101." },
    {
      usage: "--priority <number>",
      description: "Runs with a smaller number start first (default 0); it may be negative.",
    },
    { usage: "--idempotency-key <key>", description: "Start once, however often this is called." },
    { usage: "--watch", description: "Follow the run until it ends, and exit with its result." },
    { usage: "--json", description: "Print the server's reply as JSON; with --watch as the first event." },
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
    const reply = await startRun(client, given, params);
    const isWatched = given.isOn("--watch");
    // With --watch, the reply has the form of an event.
    const output = isWatched ? { event: "start", data: reply } : reply;
    print(json ? JSON.stringify(output) : printable(reply.runId));
    return isWatched ? watchRun(client, reply.runId, { json }) : EXIT.ok;
  },
};

async function startRun(client: Client, given: Given, params: unknown): Promise<{ runId: string }> {
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

/** Parses the value of a JSON flag. */
export function parseJsonFlag(flag: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new OperatorError(`${flag} is \`${text}\`. Accepted: JSON, such as '{"region":"eu"}'.`, EXIT.usage);
  }
}
