/** Filters of OpenAlex: `field:value`, joined by commas; alternatives by `|`. */
import { DAY_MS } from "../../kernel/time/units.ts";
import type { SimulatedRecord, TimeField } from "../common/records.ts";
import { asWorkId, doiOf, typeOf } from "./work.ts";

export interface WorksFilter {
  /** Bounds by time, both included, in milliseconds. */
  bounds: { field: TimeField; from?: number; until?: number }[];
  conditions: ((record: SimulatedRecord) => boolean)[];
  /** It filters by the time of creation or update, which needs a key. */
  needsKey: boolean;
  /** What `meta.x_query` says of it. */
  rows: { column_id: string; value: string }[];
}

/** A message instead of a filter that cannot be read. */
export function readFilter(text: string): WorksFilter | string {
  const filter: WorksFilter = { bounds: [], conditions: [], needsKey: false, rows: [] };
  for (const part of text.split(",").filter((one) => one !== "")) {
    const colon = part.indexOf(":");
    const [name, value] = [part.slice(0, colon).replaceAll("-", "_"), part.slice(colon + 1)];
    const [, side, kind = ""] = /^(from|to)_(publication|created|updated)_date$/.exec(name) ?? [];
    const field = TIMES[kind];
    const condition = CONDITIONS[name];
    filter.rows.push({ column_id: name, value });
    if (side !== undefined && field !== undefined) {
      const ms = instantOf(value, side);
      if (ms === undefined) return `Value for param ${name} must be a date in format 2020-05-17 or 2022-12-30T00:00:00`;
      filter.bounds.push(side === "from" ? { field, from: ms } : { field, until: ms });
      filter.needsKey ||= kind !== "publication";
    } else if (condition) {
      const values = value.split("|");
      filter.conditions.push((record) => values.some((one) => condition(record, one)));
    } else {
      const valid = [...Object.keys(CONDITIONS), ...DATE_FILTERS].sort().join(", ");
      return `${part.slice(0, colon)} is not a valid field. Valid fields are underscore or hyphenated versions of: ${valid}`;
    }
  }
  return filter;
}

const TIMES: Readonly<Record<string, TimeField>> = {
  publication: "published",
  created: "created",
  updated: "updated",
};
const DATE_FILTERS = Object.keys(TIMES).flatMap((kind) => [`from_${kind}_date`, `to_${kind}_date`]);

/** Whether the words stand in title or abstract. */
export const inText = ({ title, abstract }: SimulatedRecord, value: string) =>
  `${title} ${abstract}`.toLowerCase().includes(value.toLowerCase());

const CONDITIONS: Readonly<Record<string, (record: SimulatedRecord, value: string) => boolean>> = {
  openalex: ({ id }, value) => id === asWorkId(value),
  doi: (record, value) => doiOf(record).endsWith(value.replace(/^https:\/\/doi\.org\//, "")) || record.title === value,
  type: (record, value) => typeOf(record) === value,
  "title.search": inText,
  "title_and_abstract.search": inText,
  "default.search": inText,
};

/** A day is its first instant as `from`, and its last one as `to`; a time is exact. */
function instantOf(text: string, side: string): number | undefined {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
  const ms = Date.parse(isDay || text.endsWith("Z") ? text : `${text}Z`);
  if (Number.isNaN(ms)) return undefined;
  return isDay && side === "to" ? ms + DAY_MS - 1 : ms;
}
