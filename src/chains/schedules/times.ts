/**
 * When a schedule fires: a cron in a time zone, and what becomes of the fires that came while nobody could start them.
 *
 * croner does the calendar. Where clocks change, a cron of one fixed time (`30 2 * * *`) fires once that day: right after a
 * jump over its time, or the first of the two times. Any other (`30 * * * *`) goes by the clock: it skips what the jump
 * left out, and fires both times.
 */
import { Cron } from "croner";
import { wrongTimeZone } from "../../kernel/time/time-zone.ts";

/** A fire is on time up to so late; a scheduler that restarts or is busy for a moment has missed nothing. */
export const MISSED_AFTER_MS = 60_000;

/** Missed fires are counted up to here, not further: a year without a server is 500,000 minutes, at 80 us each. */
export const MISSED_COUNT_MAX = 100;

/** Which missed fires still start a run: none, the newest one, or every one. */
export type MissedPolicy = "skip" | "last" | "all";

const CRON_LENGTH_MAX = 255;

const FIELDS = [
  ["minute", "0-59"],
  ["hour", "0-23"],
  ["day of month", "1-31, `L` for the last day, `15W` for the weekday nearest to the 15th"],
  ["month", "1-12 or JAN-DEC"],
  ["weekday", "0-7 or SUN-SAT, `FRI#2` for the second Friday, `FRI#L` for the last"],
] as const;

const NICKNAMES = ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"];

/** One item of a field's list. croner alone would read on behind a mistake: `5*` as 5, `JANFEB` as month 12. */
const VALUE = "(?:\\d+|[a-z]{3})";
const ITEM = new RegExp(`^(?:(?:[*?]|${VALUE}(?:-${VALUE})?)(?:/\\d+)?(?:#[1-5l]|l)?|lw?|\\d+w)$`, "i");

/** A cron without a year fires in some year or never, whatever day one starts to look. */
const SOME_DAY_MS = Date.UTC(2025, 0, 1);

/** What is wrong with them, as a sentence that lacks its full stop like every reason of VALIDATION_FAILED. */
export function checkCron(cron: string, timeZone: string): string | undefined {
  return wrongTimeZone(timeZone) ?? wrongCron(cron) ?? neverFires(cron, timeZone);
}

/** The first fire after the instant; none if the time zone's clock never shows such a time again. */
export function nextFire(cron: string, timeZone: string, afterMs: number): number | undefined {
  return fireAfter(calendar(cron, timeZone), afterMs);
}

export interface Due {
  cron: string;
  timeZone: string;
  policy: MissedPolicy;
  /** The fire that was to be next: what `nextMs` said the last time. */
  dueMs: number;
  nowMs: number;
  /** How many missed fires policy `all` starts in one round; at least 1. */
  catchUpMax: number;
}

export interface FirePlan {
  /** The fires to start runs for, in order. */
  fires: number[];
  /** What is due after these. Not later than now when policy `all` has more to catch up with. */
  nextMs: number | undefined;
  /** Missed fires that this round settles, started or dropped; MISSED_COUNT_MAX of them may stand for more dropped. */
  missed: number;
}

/**
 * Settles everything from `dueMs` to `nowMs`. On-time fires always start, missed ones as the policy wants. With `all` the
 * oldest go first and an on-time fire waits behind them, so one number, `nextMs`, tells all that is still to come.
 */
export function planFires({ cron, timeZone, policy, dueMs, nowMs, catchUpMax }: Due): FirePlan {
  // Also after the clock was set back: what has fired once does not fire again.
  if (nowMs < dueMs) return { fires: [], nextMs: dueMs, missed: 0 };
  const job = calendar(cron, timeZone);
  const onTimeFromMs = nowMs - MISSED_AFTER_MS;

  const missed = firesIn(job, dueMs, onTimeFromMs, policy === "all" ? catchUpMax : MISSED_COUNT_MAX);
  if (policy === "all") {
    const newestMs = missed.at(-1);
    const restMs = newestMs === undefined ? dueMs : fireAfter(job, newestMs);
    if (restMs !== undefined && restMs < onTimeFromMs) return { fires: missed, nextMs: restMs, missed: missed.length };
  }

  const firstOnTimeMs = dueMs < onTimeFromMs ? fireAfter(job, onTimeFromMs - 1) : dueMs;
  const onTime = firesIn(job, firstOnTimeMs, nowMs + 1, Number.POSITIVE_INFINITY);
  return {
    fires: [...toStart(policy, missed, () => newestBefore(job, onTimeFromMs, dueMs)), ...onTime],
    nextMs: fireAfter(job, nowMs),
    missed: missed.length,
  };
}

function toStart(policy: MissedPolicy, missed: number[], newest: () => number): number[] {
  switch (policy) {
    case "skip":
      return [];
    case "last":
      return missed.length > 0 ? [newest()] : [];
    case "all":
      return missed;
  }
}

function calendar(cron: string, timeZone: string): Cron {
  return new Cron(cron, { timezone: timeZone, mode: "5-part" });
}

function fireAfter(job: Cron, afterMs: number): number | undefined {
  return job.nextRun(new Date(afterMs))?.getTime();
}

/** `firstMs`, which is taken for a fire, and those after it, up to but without `beforeMs`. */
function firesIn(job: Cron, firstMs: number | undefined, beforeMs: number, max: number): number[] {
  const fires: number[] = [];
  for (let fireMs = firstMs; fireMs !== undefined && fireMs < beforeMs && fires.length < max; ) {
    fires.push(fireMs);
    fireMs = fireAfter(job, fireMs);
  }
  return fires;
}

/** The newest fire before the instant; `dueMs` where the cron has none since, because it is due whatever the cron says. */
function newestBefore(job: Cron, beforeMs: number, dueMs: number): number {
  // croner skips the whole second that the instant lies in, so the search starts from the next one.
  const [newest] = job.previousRuns(1, new Date(Math.ceil(beforeMs / 1_000) * 1_000));
  return Math.max(newest?.getTime() ?? dueMs, dueMs);
}

function wrongCron(cron: string): string | undefined {
  if (cron.length > CRON_LENGTH_MAX) return `A cron has at most ${CRON_LENGTH_MAX} characters, not ${cron.length}`;
  const fields = cron.trim().split(/\s+/);
  if (cron.includes("@")) return wrongNickname(fields.join(" "));
  if (fields.length !== FIELDS.length) {
    const names = FIELDS.map(([name]) => name).join(", ");
    return `A cron has five fields (${names}), but \`${cron}\` has ${cron.trim() === "" ? "none" : fields.length}`;
  }
  for (const [index, [name, values]] of FIELDS.entries()) {
    const field = fields[index] ?? "";
    if (isField(field, index)) continue;
    return `The ${name} \`${field}\` in cron \`${cron}\` is not valid: it takes ${values}, \`*\`, lists \`1,2\`, ranges \`1-5\` and steps \`*/5\``;
  }
  return undefined;
}

function wrongNickname(text: string): string | undefined {
  if (NICKNAMES.includes(text.toLowerCase())) return undefined;
  return `There is no cron \`${text}\`: use five fields or one of ${NICKNAMES.join(", ")}`;
}

/** Whether croner takes the field, with all others left open: its own messages count some fields from 0. */
function isField(field: string, index: number): boolean {
  // A `+` before weekdays asks for both, the day of the month and the weekday, instead of either.
  const items = index === FIELDS.length - 1 ? field.replace(/^\+/, "") : field;
  if (!items.split(",").every((item) => ITEM.test(item))) return false;
  try {
    const pattern = FIELDS.map((_, place) => (place === index ? field : "*")).join(" ");
    calendar(pattern, "UTC");
    return true;
  } catch {
    return false;
  }
}

function neverFires(cron: string, timeZone: string): string | undefined {
  if (nextFire(cron, timeZone, SOME_DAY_MS) !== undefined) return undefined;
  return `Cron \`${cron}\` never fires: the calendar has no such day, or the clock in ${timeZone} no such time`;
}
