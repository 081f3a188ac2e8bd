/** Which window a plan takes: the one that was asked for, as far as it can be closed, or what the source has new. */
import { invalid } from "../../kernel/errors.ts";
import { DURATION_RULE, durationMs, similarDuration } from "../spec/duration.ts";
import type { WindowSpec } from "../spec/snapshot.ts";
import { closedUntil, closesAt, instantOf, inWholeUnits, type Range, rangeBefore } from "./window.ts";

/** `to` is exclusive. A date is the start of that day of the source. */
export type AskedWindow = { from: string; to: string } | { last: string };

export type Chosen =
  | { range: Range; notes: string[] }
  /** Nothing can be closed yet. A reason without a full stop. */
  | { nothing: string; closesAt: Date };

/** Without a window: from the watermark to the last instant that can be closed. The first time from `earliest`, or one `maxWindow`. */
export function chooseRange(
  window: WindowSpec,
  asked: AskedWindow | undefined,
  { now, watermark }: { now: Date; watermark: Date | undefined },
): Chosen {
  const closed = closedUntil(window, now);
  const earliest = window.earliest === undefined ? undefined : instantOf(window.earliest, window.timezone);
  const wanted = asked ? askedRange(window, asked, closed) : { from: watermark ?? earliest, to: closed };
  const from = wanted.from ?? rangeBefore(window, closed, window.maxWindowMs).from;
  const whole = inWholeUnits(window, { from, to: wanted.to });
  const notes: string[] = [];
  const range = { ...whole };
  if (asked && "from" in asked && (whole.from < from || whole.to > wanted.to)) {
    notes.push(`The window is widened to whole units of the source: ${shownRange(whole)}.`);
  }
  if (earliest && range.from < earliest) {
    range.from = inWholeUnits(window, { from: earliest, to: earliest }).from;
    notes.push(`The window starts at ${shownTime(range.from)}: the source has nothing older.`);
  }
  if (range.to > closed) {
    range.to = closed;
    notes.push(`The window ends at ${shownTime(closed)}: what is later may still change.`);
  }
  if (range.from < range.to) return { range, notes };
  if (earliest && whole.to <= earliest) throw invalid(`The source has nothing before ${shownTime(earliest)}`);
  return nothingIn(window, range.from);
}

/** There is nothing to plan before the unit at `from` can be closed. */
export function nothingIn(window: WindowSpec, from: Date): { nothing: string; closesAt: Date } {
  const at = closesAt(window, from);
  return {
    nothing: `The window from ${shownTime(from)} on can be closed at ${shownTime(at)}, not before`,
    closesAt: at,
  };
}

function askedRange(window: WindowSpec, asked: AskedWindow, closed: Date): Range {
  if ("last" in asked) {
    const ms = durationMs(asked.last);
    if (ms === undefined || ms === 0) {
      const similar = similarDuration(asked.last);
      const hint = similar === undefined ? "" : ` (did you mean \`${similar}\`?)`;
      throw invalid(
        `The field \`window.last\`: \`${asked.last}\` is not ${DURATION_RULE}, of at most 100 years${hint}`,
      );
    }
    return rangeBefore(window, closed, ms);
  }
  const [from, to] = (["from", "to"] as const).map((name) => {
    const instant = instantOf(asked[name], window.timezone);
    if (instant) return instant;
    throw invalid(
      `The field \`window.${name}\`: \`${asked[name]}\` is neither a date like 2026-08-20 nor a time like 2026-08-20T00:00:00Z`,
    );
  }) as [Date, Date];
  if (from >= to)
    throw invalid("The field `window.to` must be after `window.from`: it is the end, and not part of the window");
  return { from, to };
}

/** `2026-08-20T00:00:00Z to 2026-08-21T00:00:00Z`; the end is exclusive. */
export function shownRange({ from, to }: Range): string {
  return `${shownTime(from)} to ${shownTime(to)}`;
}

export function shownTime(at: Date): string {
  return at.toISOString().replace(".000Z", "Z");
}
