/**
 * When the tables of an opTime are late: a given duration after its hour, day or month has ended in the model's time zone.
 * The next deadline follows from the present time alone, so nothing is stored per opTime.
 */
import { endOfOpTime, type Grain, grainOf, movedOpTime, opTimeAt } from "../../kernel/time/op-time.ts";

export interface DeadlineSpec {
  grain: Grain;
  timeZone: string;
  /** An ISO 8601 duration such as `PT6H`, counted from the end of the period; a day in it is 24 hours. */
  deadline: string;
}

const DURATION = /^P(?:(\d{1,10})D)?(?:T(?=\d)(?:(\d{1,10})H)?(?:(\d{1,10})M)?(?:(\d{1,10})S)?)?$/;
const UNITS_MS = [86_400_000, 3_600_000, 60_000, 1_000];
const DAYS_MAX = 366;

/** The duration in ms, or its problem as a sentence without its full stop. */
export function parseDeadline(deadline: string): { durationMs: number } | { problem: string } {
  const [, ...counts] = DURATION.exec(deadline) ?? [];
  if (counts.every((count) => count === undefined)) {
    const shown = deadline.slice(0, 64);
    return {
      problem: `A \`deadline\` is a duration of days, hours, minutes and seconds like \`PT6H\` or \`P1DT30M\`, not \`${shown}\``,
    };
  }
  const durationMs = UNITS_MS.reduce((sum, unitMs, index) => sum + Number(counts[index] ?? 0) * unitMs, 0);
  if (durationMs > DAYS_MAX * 86_400_000) {
    return {
      problem: `A \`deadline\` is at most ${DAYS_MAX} days after the end of the period; \`${deadline}\` is more`,
    };
  }
  return { durationMs };
}

/** The instant from which the opTime is late; none for an opTime of another grain, which has no end. */
export function deadlineOf(spec: DeadlineSpec, opTime: string): number | undefined {
  if (grainOf(opTime) !== spec.grain) return undefined;
  return endOfOpTime(opTime, spec.grain, spec.timeZone) + durationOf(spec);
}

/**
 * The first opTime whose deadline lies after the instant. Hours and days that a clock change skipped are never returned:
 * no table can be late for them.
 */
export function nextDeadline(spec: DeadlineSpec, afterMs: number): { opTime: string; dueMs: number } {
  const { grain, timeZone } = spec;
  const durationMs = durationOf(spec);
  const endsAfterMs = afterMs - durationMs;
  let opTime = opTimeAt(endsAfterMs, grain, timeZone, 0);
  // When clocks are set back by more than the period, an earlier period repeats and its end still lies ahead.
  for (;;) {
    const previous = movedOpTime(opTime, grain, -1);
    if (previous === undefined || endOfOpTime(previous, grain, timeZone) <= endsAfterMs) break;
    opTime = previous;
  }
  return { opTime, dueMs: endOfOpTime(opTime, grain, timeZone) + durationMs };
}

function durationOf({ deadline }: DeadlineSpec): number {
  const parsed = parseDeadline(deadline);
  if ("problem" in parsed) throw new RangeError(`${parsed.problem}.`);
  return parsed.durationMs;
}
