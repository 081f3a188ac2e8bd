/** Validates names of time zones. */
import { nearest } from "../nearest.ts";

/** What is wrong with the name, without a full stop, as a reason of VALIDATION_FAILED. */
export function wrongTimeZone(timeZone: string): string | undefined {
  if (isTimeZone(timeZone)) return undefined;
  const known = ["UTC", ...Intl.supportedValuesOf("timeZone")];
  const isPlace = (name: string) => name.toLowerCase().endsWith(`/${timeZone.toLowerCase()}`);
  const meant = nearest(timeZone, known) ?? known.find(isPlace);
  const hint = meant === undefined ? ": use a name like `Europe/Berlin` or `UTC`" : ` (did you mean \`${meant}\`?)`;
  return `There is no time zone \`${timeZone.slice(0, 64)}\`${hint}`;
}

function isTimeZone(name: string): boolean {
  // Node 22 accepts offsets like `+02:00` and Node 20 does not, and both may use the same database.
  if (/^[+-]/.test(name)) return false;
  try {
    Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
