/** The days of the demo. Sources refuse days that are not closed, so all lie in the past: some are for the scenario, some for later. */
import type { Clock } from "../kernel/time/clock.ts";
import { DAY_MS } from "../kernel/time/units.ts";
import { lastDays } from "../simulators/index.ts";

export interface Days {
  /** `2026-11-01`, ...; the scenario is about these. */
  scenario: readonly string[];
  /** The days that follow, for the time after the scenario. */
  later: readonly string[];
}

const SCENARIO_DAYS = 7;
const LATER_DAYS = 5;

export function daysBefore(clock: Clock): Days {
  // A day of Crossref or PubMed can be harvested a day after its end.
  const all = lastDays(SCENARIO_DAYS + LATER_DAYS, { now: () => clock.now() - DAY_MS });
  return { scenario: all.slice(0, SCENARIO_DAYS), later: all.slice(SCENARIO_DAYS) };
}

export function newestOf(days: readonly string[]): string {
  const newest = days.at(-1);
  if (newest === undefined) throw new Error("there is a day at least");
  return newest;
}

/** `2026-11-01` is the opTime `20261101`. */
export function opTimeOf(day: string): string {
  return day.replaceAll("-", "");
}

/** The window of a harvest; its end is exclusive. */
export function windowOf(days: readonly string[]): { from: string; to: string } {
  const newest = newestOf(days);
  return { from: days[0] ?? newest, to: new Date(Date.parse(newest) + DAY_MS).toISOString().slice(0, 10) };
}
