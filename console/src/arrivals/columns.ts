/** Which opTimes the maps show, as changes of the address: how many of them, and from where or up to where. */
import type { CellsReply } from "./api.ts";
import type { ArrivalsSearch } from "./routes.ts";

/** The first one is shown without a choice, the last one is the most that the API answers. */
export const COLUMNS = [45, 120, 400, 2_400] as const;

type Change = Pick<ArrivalsSearch, "from" | "to" | "last" | "at" | "until">;
type Shown = Pick<CellsReply, "grain" | "opTimes" | "later">;

/** A range begins with the column at which the one before it ended. An open cell or a selection of another range is closed. */
const MOVED = { from: undefined, to: undefined, at: undefined, until: undefined } as const satisfies Change;

/** Undefined where there is nothing earlier. */
export function earlierThan({ grain, opTimes }: Shown, search: ArrivalsSearch): Change | undefined {
  const last = columnsOf(opTimes, search);
  const isWhole = opTimes.length >= (last ?? COLUMNS[0]) || search.from !== undefined;
  // Periods have no beginning, names have.
  return opTimes[0] === undefined || (grain === null && !isWhole) ? undefined : { ...MOVED, to: opTimes[0], last };
}

/** Undefined where there is nothing later. */
export function laterThan({ opTimes, later }: Shown, search: ArrivalsSearch): Change | undefined {
  return later ? { ...MOVED, from: opTimes.at(-1), last: columnsOf(opTimes, search) } : undefined;
}

/** Another number of columns, with the same end. */
export function withColumns(columns: number, opTimes: readonly string[], { from, to }: ArrivalsSearch): Change {
  const isNewest = from === undefined && to === undefined;
  return { from: undefined, to: isNewest ? undefined : opTimes.at(-1), last: chosen(columns) };
}

/** The columns of a cell, with as many beside them as are shown without a choice. */
export function zoomedTo(opTimes: readonly string[], first: number, end: number): Change {
  const columns = Math.max(COLUMNS[0], end - first + 1);
  const from = Math.min(first - Math.floor((columns - (end - first + 1)) / 2), opTimes.length - columns);
  return { ...MOVED, from: opTimes[Math.max(0, from)], last: chosen(columns) };
}

/** A range of both ends keeps its length. */
function columnsOf(opTimes: readonly string[], { from, to, last }: ArrivalsSearch): number | undefined {
  return from !== undefined && to !== undefined ? chosen(opTimes.length) : last;
}

function chosen(columns: number): number | undefined {
  return columns === COLUMNS[0] ? undefined : columns;
}
