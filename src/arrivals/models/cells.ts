/** Readiness as cells: a page of tables or models by a range of opTimes, with a code of one character for each cell. */
import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Grain, grainOf, movedOpTime, opTimeAt, opTimesBetween } from "../../kernel/time/op-time.ts";
import { arrivedOpTimes } from "../store/arrivals.ts";
import { cellsOf, modelRows, newestOpTimes, type RowFilter, tableRows, usualGrain } from "../store/cells.ts";

/** What the codes mean; for a table and a model in turn. A point is nothing yet. */
export const CELL_CODES = {
  table: { a: "arrived", m: "arrived more than once" },
  model: {
    s: "its last run succeeded",
    f: "its last run failed",
    r: "it runs",
    p: "it is ready and waits for a free worker",
    w: "it waits for tables",
    q: "it waits in case a table arrives again",
    a: "something new has arrived, and the rerun needs approval",
    t: "its last attempt failed, and it will be retried",
    n: "tables have arrived, but it has not run",
  },
} as const;
export const NOTHING = ".";

export interface CellsQuery extends Omit<RowFilter, "grain"> {
  by: "table" | "model";
  /** `name` is for opTimes without a grain. Unset: that of most models. */
  grain?: Grain | "name";
  /** With only one of them, the `last` opTimes from or up to it; without both, the newest. */
  from?: string;
  to?: string;
  last: number;
  limit: number;
}

export interface Cells {
  grain: Grain | null;
  opTimes: string[];
  /** There are opTimes after these. */
  later: boolean;
  rows: { name: string; title: string | null; cells: string }[];
  /** The `after` of the next page; null at the end. */
  next: string | null;
}

/** More than two years of days, or a quarter of hours. */
const OP_TIMES_MAX = 2_400;
/** Of one answer. */
const CELLS_MAX = 100_000;
const FORM_OF = { hour: "^[0-9]{10}$", day: "^[0-9]{8}$", month: "^[0-9]{6}$" } as const;
/** Of the right length, but not all are dates. */
const CANDIDATES = 10;

export async function readCells(db: Db, clock: Clock, query: CellsQuery): Promise<Cells> {
  const { grain, opTimes, later } = await columnsOf(db, clock, query);
  if (opTimes.length > OP_TIMES_MAX) {
    const reason = `The range ${query.from} to ${query.to} has ${opTimes.length} opTimes, more than the ${OP_TIMES_MAX} of one answer`;
    throw invalid(reason);
  }
  const limit = Math.max(1, Math.min(query.limit, Math.floor(CELLS_MAX / Math.max(opTimes.length, 1))));
  const { by, after, q } = query;
  const filter: RowFilter = {
    ...(after === undefined ? {} : { after }),
    ...(q === undefined ? {} : { q }),
    ...(grain === null ? {} : { grain }),
  };
  const found = await (by === "table" ? tableRows : modelRows)(db, filter, limit + 1);
  const rows = found.slice(0, limit);
  const [from, to] = [opTimes[0], opTimes.at(-1)];
  const range = { from: from ?? "", to: to ?? "", length: grain === null ? null : (from?.length ?? null) };
  const names = rows.map(({ name }) => name);
  const codes = from === undefined || names.length === 0 ? new Map() : await cellsOf(db, by, names, range);
  return {
    grain,
    opTimes,
    later,
    rows: rows.map(({ name, title }) => {
      const row = codes.get(name) as Map<string, string> | undefined;
      return { name, title, cells: opTimes.map((opTime) => row?.get(opTime) ?? NOTHING).join("") };
    }),
    next: found.length > limit ? (names.at(-1) ?? null) : null,
  };
}

type Columns = Pick<Cells, "grain" | "opTimes" | "later">;

async function columnsOf(db: Db, clock: Clock, query: CellsQuery): Promise<Columns> {
  const grain = await grainIn(db, query);
  if (grain === null) {
    const opTimes = await namesIn(db, query);
    const end = opTimes.at(-1);
    return { grain, opTimes, later: end !== undefined && (await arrivedOpTimes(db, end, null, 2)).length > 1 };
  }
  const newest = await lastOf(db, clock, grain, query.last);
  const opTimes = opTimesBetween(...boundsOf(query, grain, newest), grain);
  return { grain, opTimes, later: (opTimes.at(-1) ?? newest) < newest };
}

/** Null for names. */
async function grainIn(db: Db, { grain, from, to }: CellsQuery): Promise<Grain | null> {
  if (from !== undefined && to !== undefined) {
    const ofRange = grainOf(from);
    return ofRange === grainOf(to) ? (ofRange ?? null) : null;
  }
  const wanted = grain ?? (await usualGrain(db)) ?? "name";
  const bound = from ?? to;
  if (wanted === "name" || bound === undefined) return wanted === "name" ? null : wanted;
  return grainOf(bound) ?? null;
}

async function namesIn(db: Db, { from, to, last }: CellsQuery): Promise<string[]> {
  if (from === undefined) return (await newestOpTimes(db, null, last, to)).toReversed();
  return arrivedOpTimes(db, from, to ?? null, to === undefined ? last : OP_TIMES_MAX + 1);
}

function boundsOf({ from, to, last }: CellsQuery, grain: Grain, newest: string): [from: string, to: string] {
  const end = to ?? newest;
  if (from === undefined) return [movedOpTime(end, grain, 1 - last) ?? end, end];
  if (to !== undefined) return [from, to];
  // Nothing after the newest.
  const whole = movedOpTime(from, grain, last - 1) ?? from;
  return [from, whole <= newest ? whole : newest < from ? from : newest];
}

/** The newest opTime that has arrived; or the period that ended last, unless nothing in the range would have arrived. */
async function lastOf(db: Db, clock: Clock, grain: Grain, last: number): Promise<string> {
  const newest = (await newestOpTimes(db, FORM_OF[grain], CANDIDATES)).find((opTime) => grainOf(opTime) === grain);
  const ended = opTimeAt(clock.now(), grain, "UTC", -1);
  if (newest === undefined || newest > ended) return newest ?? ended;
  return newest > (movedOpTime(ended, grain, -last) ?? "") ? ended : newest;
}
