/** `millrace harvest pause` and `resume`: hold a source, an endpoint or an operation back. */
import { type Client, pathTo } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import type { Flag, Given } from "../common/command.ts";
import { printable, toSeconds } from "../common/output.ts";

interface Pause {
  source: string;
  endpoint: string | null;
  operation: string | null;
  at: string;
  by: string;
  reason: string | null;
  /** Made by Millrace. */
  automatic: boolean;
}

export interface PausesReply {
  items: Pause[];
}

interface ResumeReply extends PausesReply {
  /** Null if it was not paused. An older server does not answer it. */
  resumed?: Pause | null | undefined;
}

const SCOPE: readonly Flag[] = [
  { usage: "--endpoint <name>", description: "This endpoint only." },
  { usage: "--operation <operation>", description: "This operation only: harvest, backfill or update." },
];

const pause = serverCommand<PausesReply>({
  summary: "Pause a source: no task of it starts until it is resumed",
  details: `Tasks that run end after their page and go on from there when the source is resumed. Plans can be made, and wait. Schedules do not fire; those
that were due meanwhile fire once after resume.`,
  args: "SOURCE",
  flags: [...SCOPE, { usage: "--reason <text>", description: "Shown to those who find it paused." }],
  examples: [
    'millrace harvest pause crossref --reason "maintenance until noon"',
    "millrace harvest pause crossref --endpoint works --operation backfill",
  ],
  execute: (client, given) => change(client, given, "pause", { reason: given.maybeText("--reason") }),
  show: pausesText,
});

const resume = serverCommand<ResumeReply>({
  summary: "Resume a source that was paused",
  details: "Give the flags that it was paused with; what is paused apart from that stays paused and is listed.",
  args: "SOURCE",
  flags: [...SCOPE],
  examples: ["millrace harvest resume crossref", "millrace harvest resume crossref --endpoint works"],
  execute: (client, given) => change(client, given, "resume", {}),
  show: resumedText,
});

export const pauses = { pause, resume };

function change<Reply>(client: Client, given: Given, action: "pause" | "resume", more: object): Promise<Reply> {
  const path = `${pathTo`api/v1/harvest/sources/${given.text("SOURCE")}`}:${action}`;
  const endpoint = given.maybeText("--endpoint");
  const operation = given.maybeText("--operation")?.toUpperCase();
  return client.call<Reply>({ method: "POST", path, body: { endpoint, operation, ...more } });
}

export function pausesText({ items }: PausesReply): string {
  return items.map((one) => printable(`${scopeOf(one)} is ${pausedText(one)}`)).join("\n");
}

/** What was paused with other flags is still paused, which must not look like a new pause. */
export function resumedText({ resumed, items }: ResumeReply): string {
  return [
    ...(resumed === null ? ["What was named is not paused: nothing was resumed."] : []),
    ...(resumed ? [printable(`Resumed ${scopeOf(resumed)}, which was ${pausedText(resumed)}`)] : []),
    items.length === 0
      ? "Nothing of the source is paused any more."
      : `Still paused, each until it is resumed with the flags that it was paused with:\n${pausesText({ items })}`,
  ].join("\n");
}

function scopeOf({ source, endpoint, operation }: Pause): string {
  return [endpoint === null ? source : `${source}/${endpoint}`, operation ?? ""].join(" ").trim();
}

function pausedText({ at, by, reason, automatic }: Pause): string {
  const why = reason === null ? "" : `: ${reason}`;
  return `paused by ${automatic ? "Millrace (access is refused)" : by} since ${toSeconds(at)}${why}`;
}
