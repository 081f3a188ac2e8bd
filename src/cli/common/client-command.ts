/** The form of most commands: a call to the server, whose reply is shown as text or, with `--json`, unchanged. */
import { environmentHelp, flagHelp } from "../../kernel/config/describe.ts";
import { CATALOGUE } from "../../modules.ts";
import { type Client, createClient, Refusal, type Request } from "./client.ts";
import type { Command, Flag, Given } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { print } from "./output.ts";

const JSON_FLAG: Flag = { usage: "--json", description: "Print the server's reply unchanged." };

/** The flags and environment variables of every client command. */
export const CLIENT_FLAGS: readonly Flag[] = flagHelp(CATALOGUE.settings.client);
export const CLIENT_ENVIRONMENT = environmentHelp(CATALOGUE.settings.client);

interface ShownReply<Reply> extends Omit<Command, "run" | "environment"> {
  /** The reply as text; an empty text is not printed. */
  show(reply: Reply, given: Given): string;
  /** For commands with several exit codes of success. */
  exitCode?(reply: Reply): number;
}

export interface ClientCommand<Reply> extends ShownReply<Reply> {
  request(given: Given): Request;
}

/** A command that makes several calls. */
export interface ServerCommand<Reply> extends ShownReply<Reply> {
  execute(client: Client, given: Given): Promise<Reply>;
}

export function clientCommand<Reply>({ request, ...command }: ClientCommand<Reply>): Command {
  return serverCommand<Reply>({ ...command, execute: async (client, given) => client.call(request(given)) });
}

export function serverCommand<Reply>(definition: ServerCommand<Reply>): Command {
  const { execute, show, exitCode, ...command } = definition;
  return {
    ...command,
    flags: [...command.flags, JSON_FLAG, ...CLIENT_FLAGS],
    environment: CLIENT_ENVIRONMENT,
    async run(given) {
      const reply = await refusalsAsJson(given, () => execute(clientFor(given), given));
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

/** With `--json`, also prints the body of an error reply. */
export async function refusalsAsJson<Reply>(given: Given, work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (given.isOn("--json") && error instanceof Refusal) print(JSON.stringify(error.body));
    throw error;
  }
}
