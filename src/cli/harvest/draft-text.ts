/** A dry run as text: what is expected of each slice, and how those are divided that are too large. */
import { counted } from "../../kernel/text/sentences.ts";
import { printable, table } from "../common/output.ts";
import type { Division, LadderStep, PlanMade } from "./api.ts";
import { inThousands, nameOf, shownEstimate, shownTime, shownWindow } from "./plan-text.ts";

export function draftText(draft: PlanMade): string {
  const { operation, window, slices, priority, notes, warnings, windows = [], estimate = null } = draft;
  const when = window === null ? "without a window" : shownWindow(window);
  const expected = estimate === null ? "" : `, ${shownEstimate(estimate)}`;
  const more = windows.length > 0 && slices > windows.length ? slices - windows.length : 0;
  return [
    `${nameOf(draft)}, ${operation}, ${when}: ${slices === 1 ? "1 slice" : `${inThousands(slices)} slices`}${expected}, priority ${priority}.`,
    ...notes.map(printable),
    ...warnings.map(({ field, reason }) => `Warning: ${printable(`${field}: ${reason}`)}`),
    ...ladderLines(draft),
    ...windowLines(windows),
    ...(more > 0 ? [`and ${counted(more, "more slice")}`] : []),
    ...partLines(draft),
    ...divisionLines(windows),
  ].join("\n");
}

function windowLines(windows: NonNullable<PlanMade["windows"]>): string[] {
  if (windows.length === 0) return [];
  const isEstimated = windows.some(({ estimate }) => estimate);
  const rows = windows.map(({ from, to, bounds, estimate }, index) => [
    index + 1,
    shownTime(from),
    shownTime(to),
    bounds.from,
    bounds.until,
    bounds.to,
    ...(isEstimated ? [estimate ? inThousands(estimate.records) : ""] : []),
  ]);
  const titles = ["SLICE", "FROM", "TO", "${window.from}", "${window.until}", "${window.to}"];
  return ["", table(isEstimated ? [...titles, "EXPECTED"] : titles, rows)];
}

/** What divides slices that are over a limit, in its order. */
function ladderLines({ limits, ladder = [], windows = [] }: PlanMade): string[] {
  const { cap = null, slice = null } = limits ?? {};
  const inTime =
    slice === null || windows.length === 0
      ? []
      : [`Slices with more than ${inThousands(slice)} records are cut in time.`];
  if (cap === null) return inTime;
  const steps = ladder.map((step) => printable(`${step.name} (${stepText(step)})`));
  const ways = [...(windows.length > 0 ? ["time"] : []), ...steps];
  const how =
    ways.length === 0
      ? "Nothing divides slices with more"
      : `Slices with more are divided by ${ways.join(", then by ")}`;
  return [...inTime, `The source answers at most ${inThousands(cap)} records for one query. ${how}.`];
}

function stepText({ kind, parts, count }: LadderStep): string {
  if (kind === "halves") return `halves: ${parts.join(" | ")}`;
  const others = count - parts.length;
  return `${counted(count, "part")}: ${parts.join(" | ")}${others > 0 ? ` and ${others} more` : ""}`;
}

const PARTS_SHOWN = 20;

function partLines({ parts = [], slices }: PlanMade): string[] {
  if (parts.length === 0) return [];
  const rows = parts.slice(0, PARTS_SHOWN).map((part, index) => [index + 1, printable(JSON.stringify(part))]);
  const more = slices - rows.length;
  return ["", table(["SLICE", "IDS"], rows), ...(more > 0 ? [`and ${counted(more, "more slice")}`] : [])];
}

const DIVISIONS_SHOWN = 20;

function divisionLines(windows: NonNullable<PlanMade["windows"]>): string[] {
  const divided = windows.flatMap(({ division }, index) => (division ? [{ division, no: index + 1 }] : []));
  const lines = divided.slice(0, DIVISIONS_SHOWN).map(({ division, no }) => `Slice ${no} ${divisionText(division)}`);
  const more = divided.length - lines.length;
  return lines.length === 0
    ? []
    : ["", ...lines, ...(more > 0 ? [`and ${counted(more, "more slice")} that are divided`] : [])];
}

function divisionText({ by, parts, first, isKnown }: Division): string {
  if (by === "NONE") return "is expected to be over the cap, and nothing divides it: it will be INCOMPLETE.";
  const shown = first.map(({ name, records }) =>
    printable(records === null ? name : `${name}: ${inThousands(records)}`),
  );
  const others = isKnown || by === "PAGE" ? parts - first.length : 0;
  const list = `${shown.join("; ")}${others > 0 ? ` and ${others} more` : ""}`;
  const how = by === "TIME" ? "time" : by === "PAGE" ? "pages" : printable(by);
  if (isKnown) return `was divided by ${how} into ${counted(parts, "part")}: ${list}.`;
  return `is expected to be divided by ${how} into at least ${counted(parts, "part")}, at first ${list}.`;
}
