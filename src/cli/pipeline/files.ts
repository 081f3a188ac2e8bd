/** The commands of `millrace pipeline` for files: register, show, list, count. */
import { counted } from "../../kernel/text/sentences.ts";
import { pathTo } from "../common/client.ts";
import { clientCommand } from "../common/client-command.ts";
import { printable, table, toSeconds } from "../common/output.ts";
import { parseShards } from "./shards.ts";

const STATUSES = ["new", "started", "done", "failed"];
/** The server counts no further. */
const TOTAL_MAX = 10_000;

const register = clientCommand<{ filename: string; shards: number[]; created: boolean }>({
  summary: "Register a file, or add shards to it",
  details: "Registering starts the file's event-ingest. Registering the same shards again changes nothing.",
  args: "FILE",
  flags: [{ usage: "--shards <list>", description: "Numbers and ranges: 0,1,4-7.", required: true }],
  examples: ["millrace pipeline register orders-2025-01-01.csv --shards 0-7"],
  request: (given) => ({
    method: "POST",
    path: "api/v1/pipeline/files/register",
    body: { filename: given.text("FILE"), shards: parseShards(given.text("--shards")) },
  }),
  show: ({ filename, shards, created }) =>
    created
      ? `Registered ${printable(filename)}, ${counted(shards.length, "shard")}.`
      : `${printable(filename)} is already registered; nothing changed.`,
});

interface ShardRow {
  shard: number;
  event_ingest_status: string;
  shard_splitter_status: string;
  shard_worker_status: string;
  mysql_sender_status: string;
  updated_at: string;
  worker?: string;
  leased_until?: string;
  lost_count: number;
  last_error?: string;
}

const show = clientCommand<{ filename: string; shards: ShardRow[] }>({
  summary: "Show the status of each shard of a file",
  args: "FILE",
  flags: [],
  examples: [
    "millrace pipeline show orders-2025-01-01.csv",
    "millrace pipeline show -- -a-name-that-begins-with-a-dash.csv",
  ],
  request: (given) => ({ method: "GET", path: pathTo`api/v1/pipeline/files/${given.text("FILE")}` }),
  show: ({ shards }) =>
    table(
      [
        "SHARD",
        "EVENT-INGEST",
        "SHARD-SPLITTER",
        "SHARD-WORKER",
        "MYSQL-SENDER",
        "UPDATED",
        "WORKER",
        "LEASED UNTIL",
        "LOST",
        "LAST ERROR",
      ],
      shards.map((row) => [
        row.shard,
        row.event_ingest_status,
        row.shard_splitter_status,
        row.shard_worker_status,
        row.mysql_sender_status,
        toSeconds(row.updated_at),
        row.worker,
        toSeconds(row.leased_until),
        row.lost_count || undefined,
        row.last_error,
      ]),
    ),
});

interface FilePage {
  items: { filename: string; created_at: string; shards: number; stages: Record<string, Record<string, number>> }[];
  page: number;
  size: number;
  total: number;
}

const ls = clientCommand<FilePage>({
  summary: "List files, newest first, with the counts of their shards",
  args: "",
  flags: [
    { usage: "--status <status>", description: "Files with a shard that is new, started, done or failed." },
    { usage: "--stage <stage>", description: "Look at this stage only; without --status: started or failed there." },
    { usage: "--prefix <text>", description: "Files whose names start with this." },
    { usage: "--page <number>", description: "Which page (default 1)." },
    { usage: "--size <number>", description: "Files per page (default 20, at most 1000)." },
  ],
  examples: ["millrace pipeline ls --status failed", "millrace pipeline ls --stage shard-worker --prefix orders-"],
  request: (given) => ({
    method: "GET",
    path: "api/v1/pipeline/files",
    query: {
      status: given.maybeText("--status"),
      stage: given.maybeText("--stage"),
      q: given.maybeText("--prefix"),
      page: given.maybeNumber("--page"),
      size: given.maybeNumber("--size"),
    },
  }),
  show({ items, page, size, total }) {
    if (items.length === 0) return page === 1 ? "There are no such files." : `There is no page ${page}.`;
    const stages = Object.keys(items[0]?.stages ?? {});
    const listing = table(
      ["FILE", "SHARDS", ...stages.map((stage) => stageName(stage).toUpperCase()), "CREATED"],
      items.map((file) => [
        file.filename,
        file.shards,
        ...stages.map((stage) => countsInWords(file.stages[stage] ?? {})),
        toSeconds(file.created_at),
      ]),
    );
    const pages = Math.ceil(total / size);
    if (pages <= 1) return listing;
    const more = total >= TOTAL_MAX ? " or more" : "";
    return `${listing}\n\nPage ${page} of ${pages}${more}, ${counted(total, "file")}${more}.`;
  },
});

interface Summary {
  total: number;
  by_stage: Record<string, Record<string, number>>;
  by_shard: { shard: number; total: number; done: number; failed: number }[];
}

const summary = clientCommand<Summary>({
  summary: "Count shards by stage and status, and by shard",
  details: "By shard, done and failed are those of the last stage.",
  args: "",
  flags: [],
  examples: ["millrace pipeline summary", "millrace pipeline summary --json | jq '.by_stage.mysql_sender.failed'"],
  request: () => ({ method: "GET", path: "api/v1/pipeline/metrics/summary" }),
  show({ total, by_stage, by_shard }) {
    if (total === 0) return "There are no files.";
    const stages = table(
      ["STAGE", ...STATUSES.map((status) => status.toUpperCase())],
      Object.entries(by_stage).map(([stage, counts]) => [
        stageName(stage),
        ...STATUSES.map((status) => counts[status] ?? 0),
      ]),
    );
    const shards = table(
      ["SHARD", "TOTAL", "DONE IN LAST STAGE", "FAILED IN LAST STAGE"],
      by_shard.map((row) => [row.shard, row.total, row.done, row.failed]),
    );
    return `${stages}\n\n${shards}`;
  },
});

export const files = { register, show, ls, summary };

/** The reply has `shard_worker` for the stage `shard-worker`. */
function stageName(field: string): string {
  return field.replaceAll("_", "-");
}

/** `3 done, 1 failed`. */
function countsInWords(counts: Readonly<Record<string, number>>): string {
  return STATUSES.filter((status) => (counts[status] ?? 0) > 0)
    .map((status) => `${counts[status]} ${status}`)
    .join(", ");
}
