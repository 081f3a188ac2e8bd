/** The shape of most commands: one call to the server, whose reply is shown to a person or, with `--json`, as it is. */
import { environmentHelp, flagHelp } from "../kernel/config/describe.ts";
import { type Client, createClient, Refusal, type Request } from "./client.ts";
import type { Command, Flag, Given } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { print } from "./output.ts";

const JSON_FLAG: Flag = { usage: "--json", description: "Print the server's reply as it is." };

/** The flags and the environment that every client reads. */
export const CLIENT_FLAGS: readonly Flag[] = flagHelp("client");
export const CLIENT_ENVIRONMENT = environmentHelp("client");

export interface ClientCommand<Reply> extends Omit<Command, "run" | "environment"> {
  request(given: Given): Request;
  /** The reply for a person; nothing is printed when it is empty. */
  show(reply: Reply, given: Given): string;
  /** When success has more than one meaning. */
  exitCode?(reply: Reply): number;
}

export function clientCommand<Reply>(definition: ClientCommand<Reply>): Command {
  const { request, show, exitCode, ...command } = definition;
  return {
    ...command,
    flags: [...command.flags, JSON_FLAG, ...CLIENT_FLAGS],
    environment: CLIENT_ENVIRONMENT,
    async run(given) {
      const asked = request(given);
      const reply = await call<Reply>(clientFor(given), asked, given.isOn("--json"));
      const text = given.isOn("--json") ? JSON.stringify(reply) : show(reply, given);
      if (text !== "") print(text);
      return exitCode?.(reply) ?? EXIT.ok;
    },
  };
}

export function clientFor(given: Given): Client {
  const url = given.maybeText("--url");
  return createClient({ env: process.env, flags: url === undefined ? {} : { url } });
}

async function call<Reply>(client: Client, request: Request, json: boolean): Promise<Reply> {
  try {
    return await client.call<Reply>(request);
  } catch (error) {
    if (json && error instanceof Refusal) print(JSON.stringify(error.body));
    throw error;
  }
}
