/** The start and end of an opTime that is an hour, a day or a month. */
import { endOfOpTime, grainOf, movedOpTime } from "../../kernel/time/op-time.ts";

export function timesOf(opTime: string, timeZone: string): { startMs: number; endMs: number } | undefined {
  const grain = grainOf(opTime);
  const before = grain && movedOpTime(opTime, grain, -1);
  if (grain === undefined || before === undefined) return undefined;
  return { startMs: endOfOpTime(before, grain, timeZone), endMs: endOfOpTime(opTime, grain, timeZone) };
}
