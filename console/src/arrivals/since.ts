/** Times that deliveries are filtered from, by name, so that a link to them stays valid; or a time as written. */
import { serverClock } from "../api/clock.ts";
import { zone, zoneName } from "../app/preferences.ts";

export const SINCE_NAMES = ["lastHour", "sinceTwo", "today", "lastDay"] as const;
const HOUR_MS = 3_600_000;

export function sinceOf(name: string | undefined, nowMs: number = serverClock.now()): string | undefined {
  switch (name) {
    case undefined:
      return undefined;
    case "lastHour":
      return new Date(nowMs - HOUR_MS).toISOString();
    case "lastDay":
      return new Date(nowMs - 24 * HOUR_MS).toISOString();
    case "today":
      return lastClock(nowMs, 0);
    case "sinceTwo":
      return lastClock(nowMs, 2);
    default:
      return Number.isNaN(Date.parse(name)) ? undefined : new Date(name).toISOString();
  }
}

/** The last time that the clock of the chosen zone showed this hour. */
function lastClock(nowMs: number, hour: number): string {
  const format = new Intl.DateTimeFormat("en", {
    timeZone: zoneName(zone.get()),
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
    hourCycle: "h23",
  });
  const part = Object.fromEntries(format.formatToParts(nowMs).map(({ type, value }) => [type, Number(value)]));
  const passedMs = (((part["hour"] ?? 0) - hour + 24) % 24) * HOUR_MS + (part["minute"] ?? 0) * 60_000;
  return new Date(Math.floor(nowMs / 60_000) * 60_000 - passedMs).toISOString();
}
