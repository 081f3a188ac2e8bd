/**
 * Records the answers that clients got, to compare them with the table. An acknowledged change must be there; a call without
 * an answer may or may not have happened; nothing else may have changed.
 */
import { QUEUE_STAGES, type QueueStage, type Status } from "../../src/tracking/states.ts";
import type { Row as WholeRow } from "../tracking.ts";

export interface ClaimedItem {
  filename: string;
  shard: number;
  fence: string;
  leased_until: string;
}

type QueuePrefix = "shard_splitter" | "shard_worker" | "mysql_sender";
type Prefix = "event_ingest" | QueuePrefix;

export type Outcome = "done" | "failed";

/** One row, with the time of the database when it was read. */
export type Row = Pick<WholeRow, "filename" | "shard" | `${Prefix}_status` | `${QueuePrefix}_fence`> & { now: Date };

export const SELECT_ROWS = `select filename, shard, event_ingest_status, shard_splitter_status, shard_worker_status,
  mysql_sender_status, shard_splitter_fence, shard_worker_fence, mysql_sender_fence, now() as now
  from tracking.pipeline_tracking`;

export interface Ledger {
  registered(filename: string, shards: readonly number[]): void;
  ingested(filename: string): void;
  claimed(stage: QueueStage, item: ClaimedItem, leaseSeconds: number): void;
  /** Before the call is made. */
  requested(stage: QueueStage, item: ClaimedItem, outcome: Outcome): void;
  /** After its answer. */
  finished(stage: QueueStage, item: ClaimedItem, outcome: Outcome): void;
  /** After it was refused because the lease was lost. */
  refused(stage: QueueStage, item: ClaimedItem): void;
  /** An answer that no client should ever get. */
  unexpected(what: string): void;
  /** A sentence for each difference between the answers and the rows. */
  contradictions(rows: readonly Row[]): string[];
}

interface Claim {
  fence: bigint;
  from: number;
  until: number;
}

/** One cell in one stage. */
interface Entry {
  claims: Claim[];
  requested: Map<string, Outcome>;
  finished: { fence: string; outcome: Outcome } | undefined;
}

/** Times in answers are rounded to milliseconds, so two of them differ by up to this from those of the database. */
const ROUNDING_MS = 2;

const prefix = (stage: QueueStage) => stage.replace("-", "_") as QueuePrefix;

export function createLedger(): Ledger {
  const shardsOf = new Map<string, readonly number[]>();
  const ingestedFiles = new Set<string>();
  const entries = new Map<string, Entry>();
  const unexpectedAnswers: string[] = [];

  function entryOf(stage: QueueStage, { filename, shard }: { filename: string; shard: number }): Entry {
    const name = `${filename}/${shard} in ${stage}`;
    const entry = entries.get(name) ?? { claims: [], requested: new Map(), finished: undefined };
    entries.set(name, entry);
    return entry;
  }

  function* handedOutTwice(): Generator<string> {
    for (const [name, { claims, finished }] of entries) {
      claims.sort((a, b) => (a.fence < b.fence ? -1 : 1));
      for (const [index, claim] of claims.entries()) {
        const before = claims[index - 1];
        if (!before) continue;
        if (before.fence === claim.fence) yield `${name} was handed out twice under fence ${claim.fence}`;
        if (before.until - ROUNDING_MS > claim.from) {
          yield `${name} was handed out under ${claim.fence} while ${before.fence} held it`;
        }
        if (finished?.fence === String(before.fence))
          yield `${name} was handed out again after it was ${finished.outcome}`;
      }
    }
  }

  /** Compares the answers about one cell in one stage with its row. */
  function* compared(name: string, entry: Entry, status: Status, fence: string | null, now: number): Generator<string> {
    const is = `it is ${status} under ${fence}`;
    if (entry.finished) {
      const { outcome, fence: acknowledged } = entry.finished;
      if (status !== outcome || fence !== acknowledged)
        yield `${name} was acknowledged as ${outcome} under ${acknowledged}; ${is}`;
      return;
    }
    const last = entry.claims.reduce<Claim | undefined>((a, b) => (a && a.fence > b.fence ? a : b), undefined);
    const mayHaveBeenReclaimed = !last || last.until - ROUNDING_MS <= now;
    const expected = last && [
      `started under ${last.fence}`,
      `${entry.requested.get(String(last.fence))} under ${last.fence}`,
    ];
    if (!mayHaveBeenReclaimed && !expected?.includes(`${status} under ${fence}`)) {
      yield `${name} was claimed under ${last.fence}; ${is}`;
    }
    // A finish must have been requested under the stored fence.
    if ((status === "done" || status === "failed") && entry.requested.get(fence ?? "") !== status) {
      yield `${name}: ${is}, which no client requested`;
    }
  }

  function* contradictions(rows: readonly Row[]): Generator<string> {
    yield* unexpectedAnswers;
    yield* handedOutTwice();
    const present = new Map(rows.map((row) => [`${row.filename}/${row.shard}`, row]));
    for (const [filename, shards] of shardsOf) {
      for (const shard of shards) {
        const row = present.get(`${filename}/${shard}`);
        if (!row) yield `${filename}/${shard} was registered and is missing`;
        else if (ingestedFiles.has(filename) && row.event_ingest_status !== "done") {
          yield `${filename}/${shard} was acknowledged as done in event-ingest; it is ${row.event_ingest_status}`;
        }
      }
    }
    for (const row of rows) {
      for (const stage of QUEUE_STAGES) {
        const status = row[`${prefix(stage)}_status`];
        const fence = row[`${prefix(stage)}_fence`];
        const name = `${row.filename}/${row.shard} in ${stage}`;
        yield* compared(name, entryOf(stage, row), status, fence, row.now.getTime());
      }
    }
  }

  return {
    registered: (filename, shards) => void shardsOf.set(filename, shards),
    ingested: (filename) => void ingestedFiles.add(filename),
    claimed(stage, item, leaseSeconds) {
      const until = Date.parse(item.leased_until);
      entryOf(stage, item).claims.push({ fence: BigInt(item.fence), from: until - leaseSeconds * 1_000, until });
    },
    requested: (stage, item, outcome) => void entryOf(stage, item).requested.set(item.fence, outcome),
    finished(stage, item, outcome) {
      const entry = entryOf(stage, item);
      if (entry.finished && entry.finished.fence !== item.fence) {
        unexpectedAnswers.push(
          `${item.filename}/${item.shard} was finished under ${entry.finished.fence} and ${item.fence}`,
        );
      }
      entry.finished = { fence: item.fence, outcome };
    },
    refused(stage, item) {
      if (Date.parse(item.leased_until) - ROUNDING_MS > Date.now()) {
        unexpectedAnswers.push(
          `${item.filename}/${item.shard} in ${stage} was lost under ${item.fence} before its lease expired`,
        );
      }
    },
    unexpected: (what) => void unexpectedAnswers.push(what),
    contradictions: (rows) => [...contradictions(rows)],
  };
}
