/**
 * Writes a window to its table: a partition with the latest version of every record that its slices brought, read and written
 * bit by bit. In the lake it is a Parquet file that waits beside the current one until the window is settled (settle.ts), in an
 * engine a transaction that is not committed until then.
 */
import { createHash } from "node:crypto";
import type { Lake, Partition, TableStore } from "../../engines/index.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import type { OutputField } from "../definition/policy.ts";
import {
  type Change,
  type ClaimedLanding,
  changesOf,
  type LandingPlan,
  recordsOf,
  sumOf,
} from "../store/records/landing.ts";
import { columnsOf, compileRow, outputFieldsOf } from "./columns.ts";

export interface WriteDeps {
  db: Queryable;
  lake: Lake | undefined;
  tables: { of(engine: string): TableStore };
}

export type LandingItem = ClaimedLanding & { plan: LandingPlan };

export interface WrittenWindow {
  item: LandingItem;
  rows: number;
  contentHash: string;
  fields: readonly OutputField[];
  partition: Partition;
  /** The table has this content already. */
  isInPlace: boolean;
}

/** Records that are in memory at once, unless one page has more. */
const RECORDS_AT_ONCE = 1_000;
const SUMMED_AT_ONCE = 100_000;

export async function writeWindow(deps: WriteDeps, item: LandingItem, signal: AbortSignal): Promise<WrittenWindow> {
  const { db } = deps;
  const { endpoint_id: endpointId, table_name: table, op_time: opTime, plan, fence } = item;
  const fields = outputFieldsOf(plan.snapshot);
  const changes = await changesOf(db, item);
  const slices = [...new Set(changes.map(({ slice_id }) => slice_id))];

  let [rows, sum] = [0, 0n];
  for (const some of inParts(changes, SUMMED_AT_ONCE)) {
    signal.throwIfAborted();
    const part = await sumOf(db, endpointId, some, slices);
    rows += part.rows;
    sum += part.sum;
  }
  const contentHash = hashOf([table, fields, rows, String(sum)]);
  const owner = `${plan.provenance_code}.${plan.endpoint_name}`;
  const partition = storeOf(deps, plan).partition({ table, opTime, owner });
  const window = { item, rows, contentHash, fields, partition };
  if ((await partition.tag()) === contentHash) return { ...window, isInPlace: true };

  const rowOf = compileRow(fields);
  const writer = await partition.write(fence, { columns: columnsOf(fields), tag: contentHash });
  try {
    for (const some of inParts(changes, RECORDS_AT_ONCE)) {
      signal.throwIfAborted();
      const records = await recordsOf(db, endpointId, some, slices);
      await writer.append(records.map(rowOf));
    }
    signal.throwIfAborted();
    await writer.finish();
  } catch (error) {
    writer.abort();
    await partition.discard(fence);
    throw error;
  }
  return { ...window, isInPlace: false };
}

function storeOf({ lake, tables }: WriteDeps, { snapshot }: LandingPlan): TableStore {
  const { engine } = snapshot.spec.landing ?? {};
  if (engine !== undefined) return tables.of(engine);
  if (lake) return lake;
  throw new Error("This process has no lake: set MILLRACE_LAKE_DIR or MILLRACE_DATA_DIR.");
}

/** Parts with at most so many ids, unless a single change has more. */
function* inParts(changes: readonly Change[], idsMax: number): Generator<Change[]> {
  let part: Change[] = [];
  let ids = 0;
  for (const change of changes) {
    if (part.length > 0 && ids + change.ids > idsMax) {
      yield part;
      part = [];
      ids = 0;
    }
    part.push(change);
    ids += change.ids;
  }
  if (part.length > 0) yield part;
}

function hashOf(content: unknown): string {
  return createHash("sha256").update(JSON.stringify(content)).digest("hex");
}
