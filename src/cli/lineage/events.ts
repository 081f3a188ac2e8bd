/** The stored events of `millrace lineage`: all of them, one with its body, and those that could not be applied. */
import { OperatorError } from "../../kernel/errors.ts";
import { inOneLine } from "../chain/words.ts";
import { pathTo } from "../common/client.ts";
import { talkingCommand } from "../common/client-command.ts";
import type { Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { table, toSeconds } from "../common/output.ts";
import { assetIdOf, type LineageEvent, TENANT_FLAG, tenantOf } from "./api.ts";

interface Events {
  items: LineageEvent[];
  /** While it is there, older events follow. */
  next: string | null;
}

const CURSOR_FLAGS: readonly Flag[] = [
  { usage: "--limit <number>", description: "How many (default 50)." },
  { usage: "--cursor <text>", description: "Go on where another list ended: it says how." },
];
const cursorOf = (given: Given) => ({ limit: given.maybeNumber("--limit"), cursor: given.maybeText("--cursor") });

const events = talkingCommand<Events>({
  summary: "List stored events, newest first",
  details:
    "APPLIED are in the graph, BUFFERED wait for the tenant to be READY, SKIPPED are from before a cutover, DEAD failed.",
  args: "",
  flags: [
    { usage: "--asset <asset>", description: "Those that name this asset; only --from and --to go with it." },
    { usage: "--job <name>", description: "Those of this job, in --job-namespace." },
    { usage: "--job-namespace <name>", description: "The namespace of the job." },
    { usage: "--run <id>", description: "Those of this run." },
    { usage: "--state <state>", description: "Those that are APPLIED, BUFFERED, SKIPPED or DEAD." },
    { usage: "--type <type>", description: "Those that tell a START, COMPLETE, FAIL ..." },
    { usage: "--from <time>", description: "From this time on." },
    { usage: "--to <time>", description: "Before this time." },
    ...CURSOR_FLAGS,
    TENANT_FLAG,
  ],
  examples: [
    "millrace lineage events --asset lake.shop.orders",
    "millrace lineage events --job-namespace spark --job daily.load --type FAIL",
  ],
  async talk(client, given) {
    if ((given.maybeText("--job") === undefined) !== (given.maybeText("--job-namespace") === undefined)) {
      throw new OperatorError("A job is named by --job-namespace and --job together.", EXIT.usage);
    }
    const tenant = await tenantOf(client, given);
    const asset = given.maybeText("--asset");
    return client.call<Events>({
      method: "GET",
      path: "api/v1/lineage/events",
      query: {
        tenant,
        asset: asset === undefined ? undefined : await assetIdOf(client, tenant, asset),
        job: given.maybeText("--job"),
        jobNamespace: given.maybeText("--job-namespace"),
        run: given.maybeText("--run"),
        state: given.maybeText("--state")?.toUpperCase(),
        type: given.maybeText("--type")?.toUpperCase(),
        from: given.maybeText("--from"),
        to: given.maybeText("--to"),
        ...cursorOf(given),
      },
    });
  },
  show: (page) => listed(page, "events"),
});

const deadLetters = talkingCommand<Events>({
  summary: "List events that could not be applied, newest first, each with the reason",
  details: "They are kept. Once the reason is gone, `millrace lineage replay` tries them again.",
  args: "",
  flags: [...CURSOR_FLAGS, TENANT_FLAG],
  examples: ["millrace lineage dead-letters", "millrace lineage dead-letters --tenant 7 --json"],
  talk: async (client, given) =>
    client.call<Events>({
      method: "GET",
      path: "api/v1/lineage/dead-letters",
      query: { tenant: await tenantOf(client, given), ...cursorOf(given) },
    }),
  show: (page) => listed(page, "dead letters"),
});

const event = talkingCommand<LineageEvent & { body: string }>({
  summary: "Print the body of a stored event, exactly as it was sent",
  details: "With --json it comes with all that is known of the event, such as whether it was applied.",
  args: "EVENT",
  flags: [TENANT_FLAG],
  examples: ["millrace lineage event 4711 | jq .inputs"],
  talk: async (client, given) =>
    client.call<LineageEvent & { body: string }>({
      method: "GET",
      path: pathTo`api/v1/lineage/events/${given.text("EVENT")}`,
      query: { tenant: await tenantOf(client, given) },
    }),
  show: ({ body }) => body,
});

function listed({ items, next }: Events, noun: string): string {
  const list = items.length === 0 ? `There are no such ${noun}${next === null ? "" : " here"}.` : eventTable(items);
  return next === null ? list : `${list}\n\nOlder ones follow: --cursor ${next}`;
}

export function eventTable(items: readonly LineageEvent[]): string {
  return table(
    ["EVENT", "TIME", "TELLS", "JOB", "RUN", "STATE", "REASON"],
    items.map((one) => [
      one.id,
      toSeconds(one.eventTime),
      one.eventType ?? one.kind.replace("_EVENT", "").toLowerCase(),
      one.jobName === null ? undefined : `${one.jobNamespace}/${one.jobName}`,
      one.runId ?? undefined,
      one.baseline ? `${one.state}, baseline` : one.state,
      inOneLine(one.error),
    ]),
  );
}

export const eventCommands = { events, event, "dead-letters": deadLetters };
