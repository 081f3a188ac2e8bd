/**
 * When a schedule fires: a cron in a time zone, and which missed fires still count.
 *
 * croner does the calendar. When clocks change, a cron with one fixed time (`30 2 * * *`) fires once that day: right after
 * its time was skipped, or at the first of two occurrences. Any other cron (`30 * * * *`) follows the clock: it does not fire
 * at skipped times, and fires at both occurrences of repeated ones.
 */
import { Cron } from "croner";
import { wrongTimeZone } from "./time-zone.ts";

/** A fire up to this late is on time, so a scheduler that restarts or is briefly busy misses nothing. */
export const MISSED_AFTER_MS = 60_000;

/** Missed fires are counted up to this limit: a year without a server is 500,000 minutes, at 80 us each. */
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

/** One item of a field's list. croner alone accepts trailing garbage: `5*` as 5, `JANFEB` as month 12. */
const VALUE = "(?:\\d+|[a-z]{3})";
const ITEM = new RegExp(`^(?:(?:[*?]|${VALUE}(?:-${VALUE})?)(?:/\\d+)?(?:#[1-5l]|l)?|lw?|\\d+w)$`, "i");

/** Any day will do: a cron has no year, so it fires in some year or never. */
const SOME_DAY_MS = Date.UTC(2025, 0, 1);

/** What is wrong with them, as a sentence without a full stop, like every reason of VALIDATION_FAILED. */
export function checkCron(cron: string, timeZone: string): string | undefined {
  return wrongTimeZone(timeZone) ?? wrongCron(cron) ?? neverFires(cron, timeZone);
}

/** The first fire after the instant; undefined if there is none in this time zone. */
export function nextFire(cron: string, timeZone: string, afterMs: number): number | undefined {
  return fireAfter(calendar(cron, timeZone), afterMs);
}

export interface Due {
  cron: string;
  timeZone: string;
  policy: MissedPolicy;
  /** The fire that is due: `nextMs` of the previous plan. */
  dueMs: number;
  nowMs: number;
  /** How many missed fires policy `all` starts in one plan; at least 1. */
  catchUpMax: number;
}

export interface FirePlan {
  /** The fires to start runs for, in order. */
  fires: number[];
  /** The next fire after these. Not later than now if policy `all` has more missed fires to start. */
  nextMs: number | undefined;
  /** Missed fires that this plan starts or drops; MISSED_COUNT_MAX means that many or more. */
  missed: number;
}

/**
 * Plans all fires from `dueMs` to `nowMs`. On-time fires always start a run, missed ones as the policy says. With `all` the
 * oldest go first and an on-time fire waits for them, so `nextMs` alone says what is left.
 */
export function planFires({ cron, timeZone, policy, dueMs, nowMs, catchUpMax }: Due): FirePlan {
  // Also when the clock was set back: a fire never happens twice.
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

/** `firstMs`, which counts as a fire, and the fires after it, before `beforeMs`. */
function firesIn(job: Cron, firstMs: number | undefined, beforeMs: number, max: number): number[] {
  const fires: number[] = [];
  for (let fireMs = firstMs; fireMs !== undefined && fireMs < beforeMs && fires.length < max; ) {
    fires.push(fireMs);
    fireMs = fireAfter(job, fireMs);
  }
  return fires;
}

/** The newest fire before the instant, at least `dueMs`: that one is due even if the cron has changed since. */
function newestBefore(job: Cron, beforeMs: number, dueMs: number): number {
  // croner skips the second of the instant, so the search starts from the next one.
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

/** Whether croner accepts the field, with `*` in all others. Its own messages are not used: they count some fields from 0. */
function isField(field: string, index: number): boolean {
  // A `+` before the weekday means: day of month AND weekday, instead of OR.
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
