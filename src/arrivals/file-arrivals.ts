/** Tracked files that are arrivals: which table and opTime the name of a file stands for. */
import { OperatorError } from "../kernel/errors.ts";
import { isOpTime } from "../kernel/time/op-time.ts";
import { type ArrivalsSettings, patternOf } from "./settings.ts";

export interface FileArrival {
  table: string;
  opTime: string;
  /** Of the rule that matched, as written in the settings. */
  pattern: string;
}

/** A rule may turn a long file name into a longer table name. */
const TABLE_LENGTH_MAX = 255;

/** The first rule that matches the whole name and gives a valid table and opTime wins. */
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

/** JavaScript keeps a reference to an unknown group as text, so no file would ever match the intended table. */
function refuseMissingGroups(pattern: RegExp, text: string, place: string): void {
  // With an empty alternative the pattern matches the empty text, and the match lists its groups.
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
