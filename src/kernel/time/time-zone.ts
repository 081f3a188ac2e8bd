/** The names of time zones that people write. */
import { nearest } from "../nearest.ts";

/** What is wrong with the name, as a sentence that lacks its full stop like every reason of VALIDATION_FAILED. */
export function wrongTimeZone(timeZone: string): string | undefined {
  if (isTimeZone(timeZone)) return undefined;
  const known = ["UTC", ...Intl.supportedValuesOf("timeZone")];
  const isPlace = (name: string) => name.toLowerCase().endsWith(`/${timeZone.toLowerCase()}`);
  const meant = nearest(timeZone, known) ?? known.find(isPlace);
  const hint = meant === undefined ? ": use a name like `Europe/Berlin` or `UTC`" : ` (did you mean \`${meant}\`?)`;
  return `There is no time zone \`${timeZone.slice(0, 64)}\`${hint}`;
}

function isTimeZone(name: string): boolean {
  // Node 22 takes offsets like `+02:00` and Node 20 does not; both may serve the same database.
  if (/^[+-]/.test(name)) return false;
  try {
    Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
