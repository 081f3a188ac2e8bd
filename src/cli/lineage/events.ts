/** The commands of `millrace lineage` for stored events: list, body of one, dead letters. */
import { OperatorError } from "../../kernel/errors.ts";
import { inOneLine } from "../chain/run-text.ts";
import { pathTo } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import type { Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { table, toSeconds } from "../common/output.ts";
import { assetIdOf, type LineageEvent, TENANT_FLAG, tenantOf } from "./api.ts";

interface Events {
  items: LineageEvent[];
  /** The cursor of the next page, if there are older events. */
  next: string | null;
}

const CURSOR_FLAGS: readonly Flag[] = [
  { usage: "--limit <number>", description: "How many (default 50)." },
  { usage: "--cursor <text>", description: "Continue after a previous list, which prints the cursor." },
];
const cursorOf = (given: Given) => ({ limit: given.maybeNumber("--limit"), cursor: given.maybeText("--cursor") });

const events = serverCommand<Events>({
  summary: "List stored events, newest first",
  details:
    "APPLIED are in the graph, BUFFERED wait for the tenant to be READY, SKIPPED are from before a cutover, DEAD failed.",
  args: "",
  flags: [
    {
      usage: "--asset <asset>",
      description: "Events that name this asset; can be combined with --from and --to only.",
    },
    { usage: "--job <name>", description: "Events of this job; needs --job-namespace." },
    { usage: "--job-namespace <name>", description: "The namespace of the job." },
    { usage: "--run <id>", description: "Events of this run." },
    { usage: "--state <state>", description: "Only APPLIED, BUFFERED, SKIPPED or DEAD." },
    { usage: "--type <type>", description: "Only events of this type: START, COMPLETE, FAIL ..." },
    { usage: "--from <time>", description: "From this time." },
    { usage: "--to <time>", description: "Before this time." },
    ...CURSOR_FLAGS,
    TENANT_FLAG,
  ],
  examples: [
    "millrace lineage events --asset lake.shop.orders",
    "millrace lineage events --job-namespace spark --job daily.load --type FAIL",
  ],
  async execute(client, given) {
    if ((given.maybeText("--job") === undefined) !== (given.maybeText("--job-namespace") === undefined)) {
      throw new OperatorError("--job-namespace and --job must be given together.", EXIT.usage);
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
  show: (page) => eventList(page, "events"),
});

const deadLetters = serverCommand<Events>({
  summary: "List events that could not be applied, newest first, each with the reason",
  details: "They are kept. When the cause is fixed, `millrace lineage replay` applies them.",
  args: "",
  flags: [...CURSOR_FLAGS, TENANT_FLAG],
  examples: ["millrace lineage dead-letters", "millrace lineage dead-letters --tenant 7 --json"],
  execute: async (client, given) =>
    client.call<Events>({
      method: "GET",
      path: "api/v1/lineage/dead-letters",
      query: { tenant: await tenantOf(client, given), ...cursorOf(given) },
    }),
  show: (page) => eventList(page, "dead letters"),
});

const event = serverCommand<LineageEvent & { body: string }>({
  summary: "Print the body of a stored event, exactly as it was sent",
  details: "With --json also prints the other fields of the event, such as its state.",
  args: "EVENT",
  flags: [TENANT_FLAG],
  examples: ["millrace lineage event 4711 | jq .inputs"],
  execute: async (client, given) =>
    client.call<LineageEvent & { body: string }>({
      method: "GET",
      path: pathTo`api/v1/lineage/events/${given.text("EVENT")}`,
      query: { tenant: await tenantOf(client, given) },
    }),
  show: ({ body }) => body,
});

function eventList({ items, next }: Events, noun: string): string {
  const list = items.length === 0 ? `There are no such ${noun}${next === null ? "" : " here"}.` : eventTable(items);
  return next === null ? list : `${list}\n\nFor older ones: --cursor ${next}`;
}

export function eventTable(items: readonly LineageEvent[]): string {
  return table(
    ["EVENT", "TIME", "TYPE", "JOB", "RUN", "STATE", "REASON"],
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
