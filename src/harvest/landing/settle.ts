/**
 * Settles a window that was written: in one transaction, which holds the lease, the new partition takes its place, the window is
 * LANDED, and its table has arrived. A process that is killed after the partition took its place leaves the window to the next
 * one, which finds it there and announces it. What is there already, and was announced, is not announced again.
 */
import type { LakeColumn } from "../../engines/index.ts";
import type { Db, Tx } from "../../kernel/data/db.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { type RetryPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import type { OutputField } from "../definition/policy.ts";
import { type ClaimedLanding, landingLease } from "../store/records/landing.ts";
import { columnsOf } from "./columns.ts";
import type { WrittenWindow } from "./write-window.ts";

/** A window of a source's endpoint that is now in its table. */
export interface LandedWindow {
  source: string;
  endpoint: string;
  /** Where the endpoint is. */
  baseUrl: string;
  path: string;
  table: string;
  opTime: string;
  from: Date;
  to: Date;
  rows: number;
  /** The fields of a record that are columns, by path. */
  fields: readonly OutputField[];
  columns: readonly LakeColumn[];
  /** Differs each time that the window lands. */
  runKey: string;
}

/** Called in the transaction that lands the window. */
export type OnLanded = (tx: Tx, landed: LandedWindow) => Promise<void>;

export interface Announcement {
  table: string;
  opTime: string;
  idempotencyKey: null;
  by: "harvest";
}

export interface SettleDeps {
  db: Db;
  arrivals: { announceIn(tx: Tx, announcements: readonly Announcement[]): Promise<unknown> };
  listeners: readonly OnLanded[];
  random: () => number;
}

export interface FailedWindow {
  item: ClaimedLanding;
  error: unknown;
}

export type Ended = WrittenWindow | FailedWindow;
export type Settled = "landed" | "unchanged" | "retried" | "failed" | "taken away";

const RETRY: RetryPolicy = { maxAttempts: 10, baseMs: 5_000, factor: 2, capMs: 600_000, jitter: 0.2 };
const ERROR_LENGTH_MAX = 2_000;

export async function settle(deps: SettleDeps, ended: Ended): Promise<Settled> {
  return "error" in ended ? settleFailed(deps, ended) : settleWritten(deps, ended);
}

/** The file system or the engine refused, which is a failure of the window and not of the database. */
class NotReplaced extends Error {}

async function settleWritten(deps: SettleDeps, written: WrittenWindow): Promise<Settled> {
  try {
    const settled = await settleInPlace(deps, written);
    if (settled === "taken away") await written.partition.discard(written.item.fence);
    return settled;
  } catch (error) {
    if (error instanceof NotReplaced) return settleFailed(deps, { item: written.item, error: error.cause });
    // In an engine, its transaction would keep the partition locked for the next attempt.
    await written.partition.discard(written.item.fence);
    throw error;
  }
}

function settleInPlace(deps: SettleDeps, written: WrittenWindow): Promise<Settled> {
  const { item, rows, contentHash, partition } = written;
  return deps.db.tx(async (tx): Promise<Settled> => {
    if ((await landingLease.hold(tx, [item])).length === 0) return "taken away";
    if (!written.isInPlace) {
      await partition.replace(item.fence).catch((cause: unknown) => {
        throw new NotReplaced("", { cause });
      });
    }
    await landingLease.finish(tx, "land", [
      { ...item, seen: item.wanted, rows: String(rows), content_hash: contentHash },
    ]);
    if (written.isInPlace && item.content_hash === contentHash) return "unchanged";
    await deps.arrivals.announceIn(tx, [
      { table: item.table_name, opTime: item.op_time, idempotencyKey: null, by: "harvest" },
    ]);
    for (const listener of deps.listeners) await listener(tx, landedOf(written));
    return "landed";
  });
}

async function settleFailed({ db, random }: SettleDeps, { item, error }: FailedWindow): Promise<Settled> {
  const delayMs = retryDelayMs(RETRY, item.attempt + 1, random);
  const reason = messageOf(error).slice(0, ERROR_LENGTH_MAX);
  const held =
    delayMs === undefined
      ? await landingLease.finish(db, "give_up", [{ ...item, seen: item.wanted, error: reason }])
      : await landingLease.finish(db, "retry_later", [{ ...item, delay_seconds: delayMs / 1_000, error: reason }]);
  if (held.length === 0) return "taken away";
  return delayMs === undefined ? "failed" : "retried";
}

function landedOf({ item, rows, fields }: WrittenWindow): LandedWindow {
  const { plan } = item;
  const { baseUrl, path } = (plan.snapshot.detail ?? plan.snapshot.spec).http;
  return {
    source: plan.provenance_code,
    endpoint: plan.endpoint_name,
    baseUrl,
    path,
    table: item.table_name,
    opTime: item.op_time,
    from: item.window_from,
    to: item.window_to,
    rows,
    fields,
    columns: columnsOf(fields),
    runKey: `landing ${item.endpoint_id} ${item.op_time} ${item.fence}`,
  };
}
