/** The geometry of a heat map, and what its cells show: pure functions, apart from the page. */
import type { State } from "../states/state.ts";

export interface HeatRow {
  name: string;
  /** One character for each column: the code of a look. A space is not loaded or has nothing to show. */
  codes: string;
}

/** What a code looks like. */
export interface Look {
  code: string;
  state: State | "none";
  /** In the words of the module. */
  word: string;
  /** Instead of that of the state. */
  glyph?: string;
}

export interface Place {
  row: number;
  column: number;
}
/** Columns of one row, from the lower to the higher. */
export interface Span {
  row: number;
  from: number;
  to: number;
}

/** More columns than this are drawn several to a cell. */
const COLUMNS_MAX = 400;
export const ROW_PX = 26;
export const HEAD_PX = 36;
const CELL_PX_MIN = 20;
const CELL_PX_MAX = 40;

export interface Layout {
  /** Columns in one cell. */
  group: number;
  /** Cells in a row. */
  count: number;
  cellPx: number;
}

export function layoutOf(columns: number, widthPx: number, cellPxMin = CELL_PX_MIN): Layout {
  const group = Math.max(1, Math.ceil(columns / COLUMNS_MAX));
  const count = Math.ceil(columns / group);
  const room = Math.floor(widthPx / Math.max(count, 1));
  return { group, count, cellPx: Math.min(Math.max(room, cellPxMin), CELL_PX_MAX) };
}

/** The look of a cell: of several columns, the one that comes first among the looks, which are sorted by urgency. */
export function lookOf(codes: string, cell: number, group: number, looks: readonly Look[]): Look | undefined {
  const part = codes.slice(cell * group, (cell + 1) * group);
  return looks.find(({ code }) => part.includes(code));
}

/** The columns of a cell. */
export function columnsOf(cell: number, { group }: Layout, columns: number): { from: number; to: number } {
  return { from: cell * group, to: Math.min((cell + 1) * group, columns) - 1 };
}

/** Where the cells must be scrolled to for one of them to be in view, with as little movement as possible. */
export function revealing(
  { row, column }: Place,
  { cellPx, group }: Layout,
  now: { left: number; top: number },
  room: { width: number; height: number },
): { left: number; top: number } {
  const [x, y] = [Math.floor(column / group) * cellPx, row * ROW_PX];
  return {
    left: Math.min(Math.max(now.left, x + cellPx - room.width), x),
    top: Math.min(Math.max(now.top, y + ROW_PX - room.height), y),
  };
}

/** About what names take, with a gap. */
function longestPx(names: readonly string[]): number {
  return names.reduce((most, { length }) => Math.max(most, length), 0) * 8 + 8;
}

export interface Heading {
  cell: number;
  /** The last two characters, which change from column to column. */
  tail: string;
  /** What comes before them, where it changes. */
  lead: string | undefined;
}

/** The headings of cells in view. A name that does not end in digits is shown whole, where there is room for it. */
export function headingsOf(
  names: readonly string[],
  { group, cellPx }: Layout,
  [first, last]: readonly [number, number],
): Heading[] {
  const headings: Heading[] = [];
  const isPeriod = names.every((name) => /^\d{6,10}$/.test(name));
  const step = isPeriod ? 1 : Math.max(1, Math.ceil(Math.min(96, longestPx(names)) / cellPx));
  for (let cell = first; cell <= last; cell += 1) {
    const name = names[cell * group] ?? "";
    if (!isPeriod) {
      if (cell % step === 0) headings.push({ cell, tail: "", lead: name });
      continue;
    }
    const before = cell === 0 ? undefined : names[(cell - 1) * group]?.slice(0, -2);
    const lead = name.slice(0, -2);
    headings.push({ cell, tail: name.slice(-2), lead: lead === before && cell !== first ? undefined : lead });
  }
  // Leads that are too near to the next one would lie over each other: the one at the edge gives way.
  const [edge, ...others] = headings.filter(({ lead }) => lead !== undefined);
  const next = others[0];
  if (isPeriod && edge && next && (next.cell - edge.cell) * cellPx < 8 * (edge.lead?.length ?? 0))
    edge.lead = undefined;
  return headings;
}
