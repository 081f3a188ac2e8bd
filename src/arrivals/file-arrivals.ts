/** Tracked files that are arrivals: which table and opTime the name of a file stands for. */
import { OperatorError } from "../kernel/errors.ts";
import { isOpTime } from "../kernel/time/op-time.ts";
import { type ArrivalsSettings, patternOf } from "./settings.ts";

export interface FileArrival {
  table: string;
  opTime: string;
  /** Of the rule, as it is written. */
  pattern: string;
}

/** What a rule adds to a long file name may be more than a table's name can hold. */
const TABLE_LENGTH_MAX = 255;

/** The first rule that fits the whole name counts, if what it makes of it can be a table and an opTime. */
export function fileArrivals({
  files,
}: Pick<ArrivalsSettings, "files">): (filename: string) => FileArrival | undefined {
  const rules = files.map(({ pattern, table, opTime }, index) => {
    const place = `arrivals.files[${index}]`;
    const whole = patternOf(`^(?:${pattern})$`, `${place}.pattern`);
    refuseMissingGroups(whole, table, `${place}.table`);
    refuseMissingGroups(whole, opTime, `${place}.opTime`);
    return { whole, pattern, table, opTime };
  });
  return (filename) => {
    for (const { whole, pattern, table, opTime } of rules) {
      if (!whole.test(filename)) continue;
      const arrival = { table: filename.replace(whole, table), opTime: filename.replace(whole, opTime), pattern };
      if (isOpTime(arrival.opTime) && arrival.table !== "" && arrival.table.length <= TABLE_LENGTH_MAX) return arrival;
    }
    return undefined;
  };
}

/** A reference to a group that is not there would stand for itself, and no file would ever be an arrival. */
function refuseMissingGroups(pattern: RegExp, text: string, place: string): void {
  // With an empty alternative it fits the empty text, and tells its groups.
  const groups = new RegExp(`${pattern.source}|`).exec("");
  const numbers = (groups?.length ?? 1) - 1;
  const names = Object.keys(groups?.groups ?? {});
  for (const [reference, number, name] of text.matchAll(/\$(?:(\d{1,2})|<([^>]*)>)/g)) {
    const isThere =
      number === undefined ? names.includes(name ?? "") : Number(number) >= 1 && Number(number) <= numbers;
    if (isThere) continue;
    throw new OperatorError(`${place} in the configuration has ${reference}, but the pattern has no such group.`);
  }
}
