/** Plans as text: windows, numbers, the reconciliation, and what became of each window. */
import { counted } from "../../kernel/text/sentences.ts";
import { inOneLine } from "../chain/run-text.ts";
import { printable, toSeconds } from "../common/output.ts";
import {
  type Divided,
  type Estimate,
  type Gap,
  hasEnded,
  type Landing,
  type OpenSlice,
  type Plan,
  type PlanDetail,
  type Reconciliation,
  type Window,
} from "./api.ts";
import type { Listed } from "./listed.ts";

const integers = new Intl.NumberFormat("en");

/** `6,403`. */
export function inThousands(count: number): string {
  return integers.format(count);
}

/** Midnight in UTC as a date: `2026-08-20`, `2026-08-20T06:00:00Z`. */
export function shownTime(time: string): string {
  return toSeconds(time)?.replace("T00:00:00Z", "") ?? "";
}

/** `2026-08-20 to 2026-08-21`; the end is exclusive. */
export function shownWindow(window: Window): string {
  return window === null ? "" : `${shownTime(window.from)} to ${shownTime(window.to)}`;
}

/** `crossref/works`. */
export function nameOf({ source, endpoint }: Pick<Plan, "source" | "endpoint">): string {
  return printable(`${source}/${endpoint}`);
}

function reconciliationLine({ expected, received, ...counts }: Reconciliation, estimate: Estimate | null): string {
  const { repeated, inserted, updated, unchanged, deleted, quarantined, missing, gaps, acceptedGaps } = counts;
  const parts = Object.entries({ inserted, updated, unchanged, deleted, quarantined, missing, gaps });
  const guessed = estimate === null ? "unknown" : shownEstimate(estimate);
  const announced = `expected ${expected === null ? guessed : inThousands(expected)}`;
  const again = repeated > 0 ? `, repeated ${inThousands(repeated)}` : "";
  const accepted = acceptedGaps > 0 ? ` (${inThousands(acceptedGaps)} accepted)` : "";
  return `${announced}, received ${inThousands(received)}${again}: ${parts
    .map(([name, count]) => `${name} ${inThousands(count)}`)
    .join(", ")}${accepted}`;
}

/** What the plan brought, which windows landed, which are missing, and what to do about those. */
export function outcomeLines(plan: PlanDetail, params: readonly string[] | undefined): string[] {
  const landings = plan.landings.toSorted((a, b) => (a.opTime < b.opTime ? -1 : 1));
  return [
    reconciliationLine(plan.reconciliation, plan.estimate ?? null),
    ...(plan.divided ?? []).map(dividedLine),
    ...landings.map(landingLine),
    ...moreWindows(plan),
    ...partLandings(plan),
    ...(hasEnded(plan) && plan.landing?.obstacle ? [`not landed: ${inOneLine(plan.landing.obstacle)}`] : []),
    ...plan.gapWindows.map(gapLine),
    ...moreGaps(plan),
    ...(plan.stopped ? [`stopped: ${inOneLine(plan.stopped)}`] : []),
    ...(hasEnded(plan) ? advice(plan, params) : []),
  ];
}

/** `divided 2026-08-02 by edat, slice 12, 266,421 records: 38 of 41 parts COMPLETE, 3 READY`. */
function dividedLine({ sliceId, window, by, expected, parts }: Divided): string {
  const { COMPLETE = 0, ...others } = parts;
  const all = Object.values(parts).reduce((sum, count) => sum + count, 0);
  const rest = Object.entries(others).map(([status, count]) => `, ${count} ${status}`);
  const where = window === null ? "" : ` ${shownWindow(window)}`;
  const records = expected === null ? "" : `, ${inThousands(expected)} records`;
  return `divided${where} by ${printable(by.join(" and "))}, slice ${sliceId}${records}: ${COMPLETE} of ${counted(all, "part")} COMPLETE${rest.join("")}`;
}

/** Open slices with their ids, and the commands that take one. */
export function openSliceLines({ planId }: PlanDetail, { items, next }: Listed<OpenSlice>): string[] {
  const [first] = items;
  if (!first) return [];
  const id = printable(planId);
  return [
    ...items.map(openSliceLine),
    ...(next ? [`and more open slices: \`millrace harvest tasks --plan ${id}\``] : []),
    `Why one does not finish: \`millrace harvest why ${id} ${first.sliceId}\`.`,
  ];
}

/** `open 2026-08-20 to 2026-08-21, slice 12: received 1,200 of 5,000`. */
function openSliceLine({ sliceId, window, rootSliceId, isParted, expected, received }: OpenSlice): string {
  const where = window === null ? "" : ` ${shownWindow(window)},`;
  const whole = rootSliceId === null ? "" : `, a part of slice ${rootSliceId}`;
  const total = expected === null ? "" : ` of ${inThousands(expected)}`;
  const state = isParted ? "divided into parts" : `received ${inThousands(received)}${total}`;
  return `open${where} slice ${sliceId}${whole}: ${state}`;
}

const BASES = {
  TOTAL: "announced",
  HINT: "a hint of the source",
  SAMPLE: "a first page",
  HISTORY: "earlier windows",
} as const satisfies Record<Estimate["basis"], string>;

/** `about 12,000 records (earlier windows)`. */
export function shownEstimate({ records, basis }: Estimate): string {
  const about = basis === "TOTAL" ? "" : "about ";
  return `${about}${records === 1 ? "1 record" : `${inThousands(records)} records`} (${BASES[basis]})`;
}

function moreWindows({ landing, landings }: PlanDetail): string[] {
  const all = Object.values(landing?.windows ?? {}).reduce((sum, count) => sum + count, 0);
  return all > landings.length ? [`and ${counted(all - landings.length, "more window")}`] : [];
}

/** `not landed shop_orders 20260820 and 20260823: only a part of the day is harvested`. */
function partLandings({ landing }: PlanDetail): string[] {
  const { table = "", grain = "day", partial = [] } = landing ?? {};
  if (partial.length === 0) return [];
  return [`not landed ${printable(`${table} ${partial.join(" and ")}`)}: only a part of the ${grain} is harvested`];
}

function landingLine({ table, opTime, status, rows, error }: Landing): string {
  const window = printable(`${table} ${opTime}`);
  const reason = inOneLine(error);
  switch (status) {
    case "LANDED":
      return `landed ${window}: ${rows === 1 ? "1 row" : `${inThousands(rows ?? 0)} rows`}`;
    case "FAILED":
      return `not landed ${window}: ${reason}`;
    case "PENDING":
      return `to be landed ${window}${reason === "" ? "" : `, tried again after: ${reason}`}`;
    case "LANDING":
      return `landing ${window}`;
  }
}

function gapLine({ sliceId, window, status, reason, missing, accepted }: Gap): string {
  const absent = missing ? `, ${missing === 1 ? "1 record" : `${inThousands(missing)} records`} missing` : "";
  const where = window === null ? "" : ` ${shownWindow(window)}`;
  const why = inOneLine(reason) || "no reason is known";
  const who = accepted ? ` (accepted by ${printable(accepted.by)}: ${inOneLine(accepted.reason)})` : "";
  return `gap${where} ${status}, slice ${sliceId}${absent}: ${why}${who}`;
}

function moreGaps({ planId, gapWindows, reconciliation: { gaps } }: PlanDetail): string[] {
  const more = gaps - gapWindows.length;
  return more > 0 ? [`and ${counted(more, "more gap", "more gaps")}: millrace harvest tasks --plan ${planId}`] : [];
}

function advice(plan: PlanDetail, params: readonly string[] | undefined): string[] {
  const { status, landing } = plan;
  const gapWindows = plan.gapWindows.filter(({ accepted }) => accepted === null);
  const again = `\`${commandFor(plan, params)}\``;
  if (status === "CANCELLED") return [`The plan was cancelled. What it brought stays; ${again} brings the rest.`];
  if (gapWindows.length > 0) {
    const one = gapWindows.length === 1;
    return [
      `When the ${one ? "reason is" : "reasons are"} removed, ${again} fills the ${one ? "gap" : "gaps"}.`,
      `One that stays can be accepted: \`millrace harvest accept ${plan.planId} ${gapWindows[0]?.sliceId} --reason TEXT\`.`,
    ];
  }
  if ((landing?.windows.FAILED ?? 0) > 0) return [`When the reason is removed, ${again} lands again.`];
  return [];
}

/** The command that harvests again what is missing. */
function commandFor(plan: PlanDetail, params: readonly string[] | undefined): string {
  const { source, endpoint, operation, namespace, gapWindows } = plan;
  const windows = gapWindows
    .filter(({ accepted }) => accepted === null)
    .map(({ window }) => window)
    .filter((window) => window !== null);
  const from = windows
    .map((window) => window.from)
    .reduce((a, b) => (a < b ? a : b), windows[0]?.from ?? plan.window?.from ?? "");
  const to = windows
    .map((window) => window.to)
    .reduce((a, b) => (a > b ? a : b), windows[0]?.to ?? plan.window?.to ?? "");
  // The server does not tell the values of parameters, only that there were some.
  const values = params ?? (namespace === endpoint ? [] : ["..."]);
  return [
    `millrace harvest run ${source} --endpoint ${endpoint}`,
    operation === "HARVEST" ? "" : `--operation ${operation}`,
    from === "" ? "" : `--from ${toSeconds(from)} --to ${toSeconds(to)}`,
    ...values.map((value) => `--param ${value}`),
  ]
    .filter((word) => word !== "")
    .map(printable)
    .join(" ");
}
