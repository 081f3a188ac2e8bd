/** The shape of most commands: one call to the server, whose reply is shown to a person or, with `--json`, as it is. */
import { environmentHelp, flagHelp } from "../../kernel/config/describe.ts";
import { CATALOGUE } from "../../modules.ts";
import { type Client, createClient, Refusal, type Request } from "./client.ts";
import type { Command, Flag, Given } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { print } from "./output.ts";

const JSON_FLAG: Flag = { usage: "--json", description: "Print the server's reply as it is." };

/** The flags and the environment that every client reads. */
export const CLIENT_FLAGS: readonly Flag[] = flagHelp(CATALOGUE.settings.client);
export const CLIENT_ENVIRONMENT = environmentHelp(CATALOGUE.settings.client);

interface ShownReply<Reply> extends Omit<Command, "run" | "environment"> {
  /** The reply for a person; nothing is printed when it is empty. */
  show(reply: Reply, given: Given): string;
  /** When success has more than one meaning. */
  exitCode?(reply: Reply): number;
}

export interface ClientCommand<Reply> extends ShownReply<Reply> {
  request(given: Given): Request;
}

/** For a command that needs several calls. */
export interface TalkingCommand<Reply> extends ShownReply<Reply> {
  talk(client: Client, given: Given): Promise<Reply>;
}

export function clientCommand<Reply>({ request, ...command }: ClientCommand<Reply>): Command {
  return talkingCommand<Reply>({ ...command, talk: async (client, given) => client.call(request(given)) });
}

export function talkingCommand<Reply>(definition: TalkingCommand<Reply>): Command {
  const { talk, show, exitCode, ...command } = definition;
  return {
    ...command,
    flags: [...command.flags, JSON_FLAG, ...CLIENT_FLAGS],
    environment: CLIENT_ENVIRONMENT,
    async run(given) {
      const reply = await refusalsAsJson(given, () => talk(clientFor(given), given));
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

/** With `--json` a refusal is printed as the server sent it, beside the sentence. */
export async function refusalsAsJson<Reply>(given: Given, work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (given.isOn("--json") && error instanceof Refusal) print(JSON.stringify(error.body));
    throw error;
  }
}
