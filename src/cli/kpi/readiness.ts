/** `millrace kpi readiness`: arrivals and states of models over a range of opTimes. */
import { clientCommand } from "../common/client-command.ts";
import { displayWidth, padEnd, paint, printable, type Style } from "../common/output.ts";
import type { TaskStatus } from "./api.ts";

export interface Readiness {
  opTimes: string[];
  tables: { table: string; cells: Record<string, { arrivals: number }> }[];
  models: { modelId: string; cells: Record<string, { state: string; last: TaskStatus | null }> }[];
  /** More rows exist than are shown. */
  partial: boolean;
}

interface Mark {
  sign: string;
  style: Style;
  meaning: string;
}

const NOTHING: Mark = { sign: "·", style: "dim", meaning: "nothing yet" };
const ARRIVED: Mark = { sign: "✓", style: "green", meaning: "arrived" };
const AGAIN: Mark = { sign: "↻", style: "green", meaning: "arrived more than once" };
const DONE: Mark = { sign: "✓", style: "green", meaning: "succeeded" };
const FAILED: Mark = { sign: "✗", style: "red", meaning: "failed" };
const RUNS: Mark = { sign: "●", style: "cyan", meaning: "runs" };
const BY_STATE: Readonly<Record<string, Mark>> = {
  waiting: { sign: "…", style: "yellow", meaning: "waits for tables" },
  quiet: { sign: "◔", style: "yellow", meaning: "waits in case a table comes again" },
  asking: { sign: "?", style: "yellow", meaning: "has something new, and asks before it runs again" },
  retrying: { sign: "↻", style: "yellow", meaning: "failed, and is tried again" },
  ready: { sign: "○", style: "cyan", meaning: "waits for a free worker" },
  running: RUNS,
  parked: RUNS,
  returned: RUNS,
};

const WIDTH_DEFAULT = 120;
/** The ends of the year, month and day in `yyyyMMddHH`. */
const DATE_CUTS = [8, 6, 4, 0];

export const readiness = clientCommand<Readiness>({
  summary: "Show arrivals and the states of models over a range of opTimes",
  details: `FROM and TO are inclusive. If both are hours, days or months, all opTimes between them are shown; otherwise those that
have arrived, in text order.`,
  args: "FROM TO",
  flags: [],
  examples: ["millrace kpi readiness 20251201 20251231"],
  request: (given) => ({
    method: "GET",
    path: "api/v1/kpi/readiness",
    query: { from: given.text("FROM"), to: given.text("TO") },
  }),
  show: (reply) => matrix(reply, process.stdout.columns ?? WIDTH_DEFAULT),
});

/** A row for each table and model, a column for each opTime; split into blocks if the window is too narrow. */
export function matrix({ opTimes, tables, models, partial }: Readiness, width: number): string {
  if (opTimes.length === 0) return "Nothing has arrived in this range.";
  if (tables.length + models.length === 0) return "There is no published model.";
  const rows = [
    ...tables.map(({ table, cells }) => ({ name: table, marks: opTimes.map((at) => tableMark(cells[at])) })),
    ...models.map(({ modelId, cells }) => ({ name: modelId, marks: opTimes.map((at) => modelMark(cells[at])) })),
  ].map(({ name, marks }) => ({ name: printable(name), marks }));
  const shared = sharedStart(opTimes);
  const nameWidth = Math.max(...[shared, ...rows.map(({ name }) => name)].map(displayWidth));
  const labels = opTimes.map((opTime) => opTime.slice(shared.length));
  const cellWidth = Math.max(...labels.map((label) => label.length)) + 1;
  const fitting = Math.max(1, Math.floor((width - nameWidth) / cellWidth));

  const blocks: string[] = [];
  for (let from = 0; from < opTimes.length; from += fitting) {
    const line = (name: string, cells: readonly string[]) => `${padEnd(name, nameWidth)}${cells.join("")}`.trimEnd();
    const header = labels.slice(from, from + fitting).map((label) => ` ${label.padEnd(cellWidth - 1)}`);
    const body = rows.map(({ name, marks }) =>
      line(
        name,
        marks.slice(from, from + fitting).map(({ sign, style }) => ` ${paint(style, sign.padEnd(cellWidth - 1))}`),
      ),
    );
    blocks.push([paint("bold", line(shared, header)), ...body].join("\n"));
  }
  const more = partial ? ["There are more tables or models than are shown."] : [];
  return [
    ...blocks,
    legend(
      rows.flatMap(({ marks }) => marks),
      width,
    ),
    ...more,
  ].join("\n\n");
}

function tableMark(cell: Readiness["tables"][number]["cells"][string] | undefined): Mark {
  if (!cell) return NOTHING;
  return cell.arrivals > 1 ? AGAIN : ARRIVED;
}

function modelMark(cell: Readiness["models"][number]["cells"][string] | undefined): Mark {
  if (!cell) return NOTHING;
  const byState = BY_STATE[cell.state];
  if (byState) return byState;
  if (cell.last === null) return NOTHING;
  return cell.last === "FAILED" ? FAILED : DONE;
}

/** Only the symbols in use; one with two meanings lists both. */
function legend(marks: readonly Mark[], width: number): string {
  const meanings = new Map<string, Set<string>>();
  for (const { sign, meaning } of marks) meanings.set(sign, (meanings.get(sign) ?? new Set()).add(meaning));
  const entries = [...meanings].map(([sign, of]) => `${sign} ${[...of].join(" or ")}`);
  const line = entries.join("   ");
  return displayWidth(line) <= width ? line : entries.join("\n");
}

/** The common prefix of all opTimes is shown once: `202512`, above `01 02 03`. Dates are cut after a year, month or day. */
function sharedStart(opTimes: readonly string[]): string {
  const [first = ""] = opTimes;
  if (opTimes.length === 1) return "";
  let length = 0;
  while (opTimes.every((opTime) => opTime.length > length + 1 && opTime[length] === first[length])) length += 1;
  const isDate = opTimes.every((opTime) => /^\d+$/.test(opTime));
  return first.slice(0, isDate ? DATE_CUTS.find((cut) => cut <= length) : length);
}
