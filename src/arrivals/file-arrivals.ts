/** Tracked files that are arrivals: which table and opTime the name of a file stands for. */
import { isOpTime } from "../kernel/op-time.ts";
import { type ArrivalsSettings, patternOf } from "./settings.ts";

export interface FileArrival {
  table: string;
  opTime: string;
}

/** What a rule adds to a long file name may be more than a table's name can hold. */
const TABLE_LENGTH_MAX = 255;

/** The first rule that fits the whole name counts, if what it makes of it can be a table and an opTime. */
export function fileArrivals({
  files,
}: Pick<ArrivalsSettings, "files">): (filename: string) => FileArrival | undefined {
  const rules = files.map(({ pattern, table, opTime }, index) => {
    return { pattern: patternOf(`^(?:${pattern})$`, `arrivals.files[${index}].pattern`), table, opTime };
  });
  return (filename) => {
    for (const { pattern, table, opTime } of rules) {
      if (!pattern.test(filename)) continue;
      const arrival = { table: filename.replace(pattern, table), opTime: filename.replace(pattern, opTime) };
      if (isOpTime(arrival.opTime) && arrival.table !== "" && arrival.table.length <= TABLE_LENGTH_MAX) return arrival;
    }
    return undefined;
  };
}
