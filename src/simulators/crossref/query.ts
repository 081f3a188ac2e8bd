/** Reads the parameters of a Crossref list: filters with inclusive days, rows, offset, sample, cursor; wrong ones are a list of failures. */
import { DAY_MS } from "../../kernel/time/units.ts";
import { type SimulatedRecord, type TimeField } from "../common/records.ts";
import { MEMBER, prefixOf, typeOf } from "./item.ts";

export interface Failure {
  type: string;
  value: string;
  message: string;
}

export interface WorksQuery {
  rows: number;
  offset: number;
  sample: number;
  cursor: string | undefined;
  select: readonly string[] | undefined;
  facets: readonly string[];
  searchTerms: string | null;
  /** Bounds by time, both included, in milliseconds. */
  bounds: { field: TimeField; from?: number; until?: number }[];
  /** Of those, all must hold. */
  conditions: ((record: SimulatedRecord) => boolean)[];
}

const ROWS_DEFAULT = 20;
const ROWS_MAX = 1000;
const OFFSET_MAX = 10_000;
const SAMPLE_MAX = 100;

const DATE_FIELDS: Readonly<Record<string, TimeField>> = {
  index: "indexed",
  deposit: "updated",
  update: "updated",
  created: "created",
  pub: "published",
  issued: "published",
};
const TRUE_OF_ALL = ["has-full-text", "has-abstract", "has-license", "has-references", "has-orcid", "is-update"];

export function readQuery(params: URLSearchParams): { query: WorksQuery; failures: Failure[] } {
  const failures: Failure[] = [];
  const integer = (name: string, fallback: number, max: number) => {
    const text = params.get(name);
    if (text === null) return fallback;
    if (/^\d+$/.test(text) && Number(text) <= max) return Number(text);
    failures.push(integerFailure(text, max));
    return fallback;
  };
  const filter = readFilter(params.get("filter"));
  failures.push(...filter.failures);
  const query = {
    rows: integer("rows", ROWS_DEFAULT, ROWS_MAX),
    offset: integer("offset", 0, OFFSET_MAX),
    sample: integer("sample", 0, SAMPLE_MAX),
    cursor: params.get("cursor") ?? undefined,
    select: params.get("select")?.split(","),
    facets: (params.get("facet") ?? "").split(",").flatMap((facet) => facet.split(":")[0] || []),
    searchTerms: params.get("query"),
    bounds: filter.bounds,
    conditions: filter.conditions,
  };
  return { query, failures };
}

export function integerFailure(value: string, max: number): Failure {
  const message = `Integer specified as ${value} but must be a positive integer less than or equal to ${max}. `;
  return { type: "integer-not-valid", value, message };
}

function readFilter(filter: string | null): Pick<WorksQuery, "bounds" | "conditions"> & { failures: Failure[] } {
  const bounds: WorksQuery["bounds"] = [];
  const conditions: WorksQuery["conditions"] = [];
  const failures: Failure[] = [];
  /** Filters of one name are alternatives. */
  const wanted = new Map<string, string[]>();
  for (const part of (filter ?? "").split(",").filter((text) => text !== "")) {
    const [name = "", ...rest] = part.split(":");
    const value = rest.join(":");
    const [, side, kind = ""] = /^(from|until)-(\w+)-date$/.exec(name) ?? [];
    const field = DATE_FIELDS[kind];
    if (side !== undefined && field !== undefined) {
      const range = rangeOf(value);
      if (range === undefined) failures.push(dateFailure(name, value));
      else bounds.push(side === "from" ? { field, from: range.from } : { field, until: range.until });
    } else if (name in VALUES) {
      wanted.set(name, [...(wanted.get(name) ?? []), value]);
    } else if (!TRUE_OF_ALL.includes(name)) {
      failures.push(filterFailure(name));
    }
  }
  for (const [name, values] of wanted) conditions.push((record) => values.includes(VALUES[name]?.(record) ?? ""));
  return { bounds, conditions, failures };
}

const VALUES: Readonly<Record<string, (record: SimulatedRecord) => string>> = {
  type: typeOf,
  prefix: prefixOf,
  doi: ({ id }) => id,
  member: () => MEMBER,
};

/** The first and last instant of `2026`, `2026-08`, `2026-08-20` or a time to the second. */
function rangeOf(text: string): { from: number; until: number } | undefined {
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z?$/.test(text)) {
    const from = Date.parse(text.endsWith("Z") ? text : `${text}Z`);
    return Number.isNaN(from) ? undefined : { from, until: from + 999 };
  }
  const [, year, month, day] = /^(\d{4})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text) ?? [];
  if (year === undefined) return undefined;
  const from = Date.parse(`${year}-${month ?? "01"}-${day ?? "01"}`);
  if (Number.isNaN(from)) return undefined;
  if (day !== undefined) return { from, until: from + DAY_MS - 1 };
  const next = month === undefined ? Date.UTC(Number(year) + 1, 0) : Date.UTC(Number(year), Number(month));
  return { from, until: next - 1 };
}

function dateFailure(name: string, value: string): Failure {
  return {
    type: "date-not-valid",
    value,
    message: `Filter ${name} specified as ${value} but must be a date of the form YYYY, YYYY-MM or YYYY-MM-DD`,
  };
}

function filterFailure(name: string): Failure {
  const dates = Object.keys(DATE_FIELDS).flatMap((kind) => [`from-${kind}-date`, `until-${kind}-date`]);
  const valid = [...Object.keys(VALUES), ...TRUE_OF_ALL, ...dates].join(", ");
  return {
    type: "filter-not-available",
    value: name,
    message: `Filter '${name}' specified but there is no such filter for this route. Valid filters for this route are: ${valid}`,
  };
}
