/** `millrace harvest check`: whether a source can be reached and read. */
import { pathTo } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable } from "../common/output.ts";
import { PARAM_FLAG, paramsOf } from "./params.ts";

export interface CheckReply {
  source: string;
  endpoint: string;
  verdict: "ok" | "warn" | "fail";
  lines: { name: string; verdict: "ok" | "warn" | "fail"; found: string; advice: string | null }[];
}

const NAME_WIDTH = 10;

export const check = serverCommand<CheckReply>({
  summary: "Check the connection to a source: address, credential, one small page, clock, rate headers",
  details: `The server asks for one small page through the rate gate of the source, as a run would. Nothing is stored. Exit code 1 if a line fails.`,
  args: "SOURCE",
  flags: [
    { usage: "--endpoint <name>", description: "The endpoint; unset, the source's default one." },
    PARAM_FLAG,
    {
      usage: "--id <id>",
      description: "Of an endpoint that answers the records of ids: the record to ask for; unset, one that is known.",
    },
  ],
  examples: ["millrace harvest check crossref", "millrace harvest check crossref --param mailto=me@example.org"],
  execute: (client, given) =>
    client.call<CheckReply>({
      method: "POST",
      path: `${pathTo`api/v1/harvest/sources/${given.text("SOURCE")}`}:check`,
      body: {
        endpoint: given.maybeText("--endpoint"),
        params: paramsOf(given),
        id: given.maybeText("--id"),
      },
    }),
  show: checkText,
  exitCode: ({ verdict }) => (verdict === "fail" ? EXIT.failed : EXIT.ok),
});

export function checkText({ source, endpoint, lines }: CheckReply): string {
  const shown = lines.flatMap(({ name, verdict, found, advice }) => [
    `${verdict.padEnd(4)}  ${name.padEnd(NAME_WIDTH)}  ${printable(found)}`,
    ...(advice === null ? [] : [`${" ".repeat(NAME_WIDTH + 8)}${printable(advice)}`]),
  ]);
  return [printable(`${source}/${endpoint}`), ...shown].join("\n");
}
