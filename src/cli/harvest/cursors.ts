/** `millrace harvest cursors`: how far sources are harvested, the history of that, and the way back. */
import { OperatorError } from "../../kernel/errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { inOneLine } from "../chain/run-text.ts";
import { type Client, pathTo } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import type { Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, table, toSeconds } from "../common/output.ts";
import { HARVEST } from "./api.ts";
import { type Listed, listedText, ofSource } from "./listed.ts";
import { OF_SOURCE } from "./lists.ts";
import { shownTime } from "./plan-text.ts";

interface Cursor {
  source: string;
  operation: string;
  key: string;
  namespace: string;
  value: string;
  /** What could be harvested by now. */
  closedUntil: string | null;
  lagSeconds: number | null;
  /** Gaps behind the watermark that somebody has accepted. */
  acceptedGaps: number;
  planId: string;
  updatedAt: string;
}

/** The history of one cursor, the newest first. */
interface Timeline {
  cursor: Cursor;
  items: TimelineItem[];
  /** Older entries are left out. */
  hasMore: boolean;
}
export interface TimelineItem {
  at: string;
  kind: string;
  from: string | null;
  to: string;
  planId: string | null;
  sliceId: number | null;
  by: string | null;
  reason: string | null;
}

interface Rewound {
  source: string;
  namespace: string;
  operation: string;
  generation: number;
  from: string;
  to: string;
  slices: number;
}

type Reply = Listed<Cursor> | { timelines: Timeline[] } | (Rewound & { isDryRun: boolean });

/** Entries of one timeline. */
const SHOWN_MAX = 100;

export const cursors = {
  cursors: serverCommand<Reply>({
    summary: "Show how far sources are harvested without a gap; rewind SOURCE sends one back",
    details: `The watermark is the end of what is harvested without a gap, apart from gaps that were accepted. The lag is the time from there to what could be harvested by
now. --timeline shows how each cursor came there: advances, gaps, who accepted them, rewinds.

\`rewind\` sends a cursor back, so that what is behind that time is harvested once more by the next plans. Records that are there stay. It needs --to and --reason.`,
    args: "[ACTION] [SOURCE]",
    flags: [
      OF_SOURCE,
      { usage: "--timeline", description: `The history of each cursor, the newest ${SHOWN_MAX} entries first.` },
      { usage: "--endpoint <name>", description: "The ENDPOINT of the cursor, as it is listed." },
      {
        usage: "--operation <operation>",
        description: "Of this operation: harvest, backfill or update. Only the cursor of harvest is sent back.",
      },
      { usage: "--to <time>", description: "For rewind: a date, or a time like 2026-08-20T00:00:00Z." },
      { usage: "--reason <text>", description: "For rewind: why it is harvested once more." },
      { usage: "--dry-run", description: "For rewind: only show what would be harvested once more." },
    ],
    examples: [
      "millrace harvest cursors --source crossref",
      "millrace harvest cursors --source crossref --timeline",
      'millrace harvest cursors rewind crossref --endpoint works --to 2026-11-01 --reason "abstracts were missing"',
    ],
    execute,
    show(reply) {
      if ("timelines" in reply) return timelinesText(reply.timelines);
      return "items" in reply ? cursorsText(reply) : rewoundText(reply);
    },
  }),
};

async function execute(client: Client, given: Given): Promise<Reply> {
  const action = given.maybeText("ACTION") ?? "list";
  if (action !== "list" && action !== "rewind") {
    const hint = didYouMean(action, ["list", "rewind"]) || " Actions: list, rewind.";
    throw new OperatorError(`There is no action \`${action}\`.${hint}`, EXIT.usage);
  }
  const endpoint = given.maybeText("--endpoint");
  const operation = given.maybeText("--operation")?.toUpperCase();
  const source = given.maybeText("SOURCE") ?? given.maybeText("--source");
  if (action === "rewind") return rewind(client, given, { source, endpoint, operation });
  const all = { method: "GET", path: `${HARVEST}/cursors`, query: { source, operation } } as const;
  const list = await ofSource(client, source, await client.call<Listed<Cursor>>(all));
  const items = list.items.filter(({ namespace }) => endpoint === undefined || namespace === endpoint);
  if (!given.isOn("--timeline")) return { ...list, items };
  const timelines: Timeline[] = [];
  for (const cursor of items) {
    const path = pathTo`api/v1/harvest/cursors/${cursor.source}/${cursor.namespace}/timeline`;
    const query = { operation: cursor.operation, limit: SHOWN_MAX + 1 };
    const read = await client.call<{ items: TimelineItem[] }>({ method: "GET", path, query });
    timelines.push({ cursor, items: read.items.slice(0, SHOWN_MAX), hasMore: read.items.length > SHOWN_MAX });
  }
  return { timelines };
}

async function rewind(
  client: Client,
  given: Given,
  { source, endpoint, operation = "HARVEST" }: Record<"source" | "endpoint" | "operation", string | undefined>,
): Promise<Rewound & { isDryRun: boolean }> {
  const [to, reason] = [given.maybeText("--to"), given.maybeText("--reason")];
  if (source === undefined || endpoint === undefined || to === undefined || reason === undefined) {
    throw new OperatorError("rewind needs SOURCE, --endpoint, --to and --reason.", EXIT.usage);
  }
  if (operation !== "HARVEST") {
    throw new OperatorError(
      "Only the cursor of HARVEST is sent back. Harvest a window again with `run --from --to`, records with `run --operation UPDATE --id`.",
      EXIT.usage,
    );
  }
  const isDryRun = given.isOn("--dry-run");
  const path = `${pathTo`api/v1/harvest/cursors/${source}/${endpoint}`}:rewind`;
  const query = isDryRun ? { dryRun: true } : {};
  const rewound = await client.call<Rewound>({ method: "POST", path, query, body: { to, reason, operation } });
  return { ...rewound, isDryRun };
}

function rewoundText({
  source,
  namespace,
  generation,
  from,
  to,
  slices,
  isDryRun,
}: Rewound & { isDryRun: boolean }): string {
  const name = printable(`${source}/${namespace}`);
  const done = isDryRun ? "would go back" : "went back";
  return `The cursor of ${name} ${done} from ${shownTime(from)} to ${shownTime(to)}, generation ${generation}; complete slices that are harvested once more: ${slices}.`;
}

/** A cursor, and below it a line for each event; a gap stands out by its sign. */
export function timelinesText(timelines: readonly Timeline[]): string {
  if (timelines.length === 0) return "There are no such cursors.";
  return timelines.map(timelineText).join("\n\n");
}

const SIGNS: Readonly<Record<string, string>> = { advance: "+", rewind: "<", gap: "!", accepted: "~" };

function timelineText({ cursor, items, hasMore }: Timeline): string {
  const head = printable(`${cursor.source}/${cursor.namespace} ${cursor.operation}, at ${shownValue(cursor.value)}`);
  const lines = items.map(({ at, kind, from, to, planId, sliceId, by, reason }) => {
    const range = `${from === null ? "the start" : shownValue(from)} to ${shownValue(to)}`;
    const slice = sliceId === null ? "" : `, slice ${sliceId}`;
    const who = by === null ? "" : ` by ${by}`;
    const why = reason === null ? "" : `: ${reason}`;
    const plan = planId === null ? "" : ` (plan ${planId}${slice})`;
    return inOneLine(`${toSeconds(at)} ${SIGNS[kind] ?? " "} ${kind.padEnd(8)} ${range}${who}${why}${plan}`);
  });
  return [head, ...lines, ...(hasMore ? [`Older entries than these ${items.length} are left out.`] : [])].join("\n");
}

function shownValue(value: string): string {
  return isTime(value) ? shownTime(value) : value;
}

export function cursorsText(list: Listed<Cursor>): string {
  return listedText(list, "cursor", (items) =>
    table(
      [
        "SOURCE",
        "OPERATION",
        "ENDPOINT",
        "KEY",
        "WATERMARK",
        "CLOSED UNTIL",
        "LAG",
        "ACCEPTED GAPS",
        "PLAN",
        "UPDATED",
      ],
      items.map((cursor) => [
        cursor.source,
        cursor.operation,
        cursor.namespace,
        cursor.key,
        shownValue(cursor.value),
        cursor.closedUntil === null ? undefined : shownTime(cursor.closedUntil),
        cursor.lagSeconds === null ? undefined : lagText(cursor.lagSeconds),
        cursor.acceptedGaps || undefined,
        cursor.planId,
        toSeconds(cursor.updatedAt),
      ]),
    ),
  );
}

/** `2d 3h`, `45m`: the two largest units; `none`. */
export function lagText(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const parts: [count: number, unit: string][] = [
    [Math.floor(minutes / 1_440), "d"],
    [Math.floor(minutes / 60) % 24, "h"],
    [minutes % 60, "m"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first === -1) return "none";
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join(" ");
}

function isTime(value: string): boolean {
  return /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value));
}
