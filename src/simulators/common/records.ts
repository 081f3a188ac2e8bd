/**
 * The records of a simulated source. A change makes a new record in the place of the old one, so that a page or a scroll that
 * holds the old one keeps what it had, as a real index does.
 */
import { DAY_MS } from "../../kernel/time/units.ts";

/** The times of a record, in milliseconds since the epoch. */
export interface RecordTimes {
  /** When the source got it. */
  created: number;
  /** When its content last changed. */
  updated: number;
  /** When the source's index last took it up; also without a change of content. */
  indexed: number;
  /** When the work was published, as a day; long before `created` for a late arrival. */
  published: number;
}

export type TimeField = keyof RecordTimes;

export interface SimulatedRecord extends RecordTimes {
  readonly id: string;
  /** Its place in the order of creation, from 0. */
  readonly ordinal: number;
  /** 1, and one more for every change. */
  version: number;
  /** Different for every version: what identifies the content in an answer. */
  title: string;
  abstract: string;
  deleted: boolean;
  /** The record as it stands in an answer, written once. */
  text: string;
}

/** What a correct harvest has of one record. */
export interface ExpectedRecord {
  id: string;
  version: number;
  /** The title, in which every version differs. */
  content: string;
  created: string;
  updated: string;
  deleted: boolean;
}

/** A window of days or instants, half-open: `from` is in it, `to` is not. */
export interface Window {
  from?: string | undefined;
  to?: string | undefined;
  /** Which time must be in the window. */
  by?: TimeField | undefined;
}

/** A record before the source has written it. */
export type NewRecord = Pick<SimulatedRecord, "id" | "title" | "abstract"> & RecordTimes;

export interface RecordStore {
  /** Grows with every change. */
  revision(): number;
  size(): number;
  /** Those that the source shows; deleted ones only where it keeps them. */
  find(id: string): SimulatedRecord | undefined;
  /** In the order of that time, both bounds included; without bounds all. */
  between(field: TimeField, bounds: Bounds): readonly SimulatedRecord[];
  add(record: NewRecord): SimulatedRecord;
  /** A new version of the content, or a deletion. */
  change(id: string, change: { updated: number; deleted?: boolean; title?: string }): SimulatedRecord;
  expected(window?: Window): ExpectedRecord[];
}

export interface Bounds {
  from?: number | undefined;
  /** Included. */
  until?: number | undefined;
}

export function createRecordStore({
  write,
  keepsDeleted,
  writesLate = false,
}: {
  write: (record: Omit<SimulatedRecord, "text">) => string;
  /** A record is written when it is first asked for, for data sets that are mostly counted. */
  writesLate?: boolean | undefined;
  /** A deleted record stays and says so, as in OAI-PMH; without it is gone. */
  keepsDeleted: boolean;
}): RecordStore {
  const records = new Map<string, SimulatedRecord>();
  /** For each time, all records in its order; made on demand. */
  const sorted = new Map<TimeField, SimulatedRecord[]>();
  let revision = 0;
  let ordinal = 0;

  /** Writes the record's text; a copy would cost half of the time that a large data set takes to make. */
  function put(record: SimulatedRecord): SimulatedRecord {
    const old = records.get(record.id);
    if (writesLate) writeLate(record);
    else record.text = write(record);
    if (record.deleted && !keepsDeleted) records.delete(record.id);
    else records.set(record.id, record);
    revision += 1;
    // One change moves one record; a data set is loaded before anybody asks for an order.
    for (const [field, order] of sorted) {
      if (old) order.splice(placeOf(order, field, old), 1);
      if (records.has(record.id)) order.splice(placeOf(order, field, record), 0, record);
    }
    return record;
  }

  function writeLate(record: SimulatedRecord): void {
    let text: string | undefined;
    Object.defineProperty(record, "text", { configurable: true, get: () => (text ??= write(record)) });
  }

  function inOrderOf(field: TimeField): SimulatedRecord[] {
    let order = sorted.get(field);
    if (!order) {
      order = [...records.values()].sort((one, other) => compare(field, one, other));
      sorted.set(field, order);
    }
    return order;
  }

  function between(field: TimeField, { from, until }: Bounds): readonly SimulatedRecord[] {
    const order = inOrderOf(field);
    const start = from === undefined ? 0 : firstAt(order, (record) => record[field] >= from);
    const end = until === undefined ? order.length : firstAt(order, (record) => record[field] > until);
    return order.slice(start, Math.max(start, end));
  }

  return {
    revision: () => revision,
    size: () => records.size,
    find: (id) => records.get(id),
    between,
    add({ id, title, abstract, created, updated, indexed, published }) {
      if (records.has(id)) throw new RangeError(`The data set has ${id} already.`);
      const times = { created, updated, indexed, published };
      ordinal += 1;
      return put({ id, ordinal: ordinal - 1, version: 1, title, abstract, ...times, deleted: false, text: "" });
    },
    change(id, { updated, deleted = false, title }) {
      const old = records.get(id);
      if (!old) throw new RangeError(`The data set has no ${id}.`);
      const version = old.version + 1;
      const changed = title ?? `${old.title.replace(/, revision \d+$/, "")}, revision ${version}`;
      return put({ ...old, version, updated, indexed: updated, deleted, title: changed });
    },
    expected({ from, to, by = "updated" } = {}) {
      const until = to === undefined ? undefined : instantOf(to) - 1;
      return between(by, { from: from === undefined ? undefined : instantOf(from), until }).map(asExpected);
    },
  };
}

export function asExpected(record: SimulatedRecord): ExpectedRecord {
  const { id, version, title, deleted } = record;
  const time = (ms: number) => new Date(ms).toISOString();
  return { id, version, content: title, created: time(record.created), updated: time(record.updated), deleted };
}

/** `2026-08-01` or an RFC 3339 time, in UTC. */
export function instantOf(text: string): number {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new RangeError(`\`${text}\` is neither a day nor a time.`);
  return ms;
}

let lastDay = { start: Number.NaN, text: "" };

/** `2026-08-01`. The last day is kept: a data set formats the same one many thousand times. */
export function dayOf(ms: number): string {
  const start = Math.floor(ms / DAY_MS) * DAY_MS;
  if (start !== lastDay.start) lastDay = { start, text: new Date(start).toISOString().slice(0, 10) };
  return lastDay.text;
}

/** `2026-08-01T12:00:00Z`. */
export function secondOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

function compare(field: TimeField, one: SimulatedRecord, other: SimulatedRecord): number {
  return one[field] - other[field] || one.ordinal - other.ordinal;
}

function placeOf(order: readonly SimulatedRecord[], field: TimeField, record: SimulatedRecord): number {
  return firstAt(order, (present) => compare(field, present, record) >= 0);
}

/** The first index for which `holds` is true; it must be false before and true after. */
function firstAt(order: readonly SimulatedRecord[], holds: (record: SimulatedRecord) => boolean): number {
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const record = order[middle];
    if (record !== undefined && holds(record)) high = middle;
    else low = middle + 1;
  }
  return low;
}
