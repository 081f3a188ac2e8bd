/**
 * Parts of a slice: what is left when time cannot be cut any further. A part has at most one range of each dimension of the
 * ladder. Dividing a part narrows the range of its last dimension; where that has no narrower one, the next dimension follows.
 *
 * The ranges that a step makes share no record and leave none out, as far as the definition is right about its dimensions. The
 * sums of what the source counts tell whether it is (divide.ts).
 */
import { DAY_MS } from "../../kernel/time/units.ts";
import type { DimensionSpec } from "../spec/snapshot.ts";

/** Both ends included: days as `2026-08-20`, or numbers. */
interface Between {
  from: string | number;
  until: string | number;
}
export type PartRange =
  | Between
  /** One value, or all that begins with this prefix. */
  | { value: string }
  /** Several values that are asked for together. */
  | { values: readonly string[] }
  /** What none of the values finds; of a prefix, what none of the longer ones does. */
  | { rest: string };

/** A range of each dimension that the slice is divided by, by its name. Stored with the slice as JSON. */
export type Part = Readonly<Record<string, PartRange>>;

/** How a part is divided next. */
export interface Step {
  dimension: DimensionSpec;
  /** `whole` is all of a dimension that is new to the part, `halves` are two parts, `list` is one part for each value. */
  kind: "whole" | "halves" | "list";
  parts: Part[];
  /** What the list leaves over. */
  rest?: Part;
}

type Ranges = Pick<Step, "kind"> & { ranges: PartRange[]; rest?: PartRange };

/** Undefined if no dimension is left. */
export function nextStep(ladder: readonly DimensionSpec[], part: Part): Step | undefined {
  const last = ladder.findLastIndex(({ name }) => Object.hasOwn(part, name));
  for (const dimension of ladder.slice(Math.max(last, 0))) {
    const divided = narrower(dimension, part[dimension.name]);
    if (!divided) continue;
    const { kind, ranges, rest } = divided;
    const within = (range: PartRange): Part => ({ ...part, [dimension.name]: range });
    return { dimension, kind, parts: ranges.map(within), ...(rest ? { rest: within(rest) } : {}) };
  }
  return undefined;
}

function narrower(dimension: DimensionSpec, range: PartRange | undefined): Ranges | undefined {
  switch (dimension.type) {
    case "DATE":
    case "NUMBER": {
      const { from, until } = dimension;
      return range === undefined ? { kind: "whole", ranges: [{ from, until }] } : halvesOf(range as Between);
    }
    case "VALUES":
      if (range !== undefined) return "values" in range ? halvesOfValues(range.values) : undefined;
      return listOf(dimension, "");
    case "PREFIX": {
      if (range === undefined) return listOf(dimension, "");
      if (!("value" in range) || lengthOf(dimension, range.value) >= dimension.depth) return undefined;
      return listOf(dimension, range.value);
    }
  }
}

function listOf({ values, rest }: { values: readonly string[]; rest?: string }, prefix: string): Ranges {
  const ranges = values.map((value) => ({ value: prefix + value }));
  return { kind: "list", ranges, ...(rest === undefined ? {} : { rest: { rest: prefix } }) };
}

/** How often the prefix was lengthened. Its steps may have several characters. */
function lengthOf({ values }: { values: readonly string[] }, prefix: string): number {
  const longest = Math.max(...values.map((value) => value.length));
  return Math.ceil(prefix.length / longest);
}

function halvesOfValues(values: readonly string[]): Ranges | undefined {
  const middle = Math.ceil(values.length / 2);
  if (values.length < 2) return undefined;
  return { kind: "halves", ranges: [{ values: values.slice(0, middle) }, { values: values.slice(middle) }] };
}

/** Undefined for one day or one number. */
function halvesOf({ from, until }: Between): Ranges | undefined {
  const [first, last] = [ordinalOf(from), ordinalOf(until)];
  if (first >= last) return undefined;
  const middle = first + Math.floor((last - first) / 2);
  const written = (ordinal: number) => (typeof from === "string" ? dayOf(ordinal) : ordinal);
  return {
    kind: "halves",
    ranges: [
      { from, until: written(middle) },
      { from: written(middle + 1), until },
    ],
  };
}

/** Days are counted from 1970. */
function ordinalOf(bound: string | number): number {
  return typeof bound === "number" ? bound : Date.parse(bound) / DAY_MS;
}

function dayOf(ordinal: number): string {
  return new Date(ordinal * DAY_MS).toISOString().slice(0, 10);
}

/** The day or number behind it. */
export function after(bound: string | number): string | number {
  return typeof bound === "number" ? bound + 1 : dayOf(ordinalOf(bound) + 1);
}

/** The parts that a plan begins with: so many days, numbers or values in each; of prefixes one for each. */
export function* piecesOf(dimension: DimensionSpec, size = 1): Generator<Part> {
  const { name } = dimension;
  if (dimension.type === "DATE" || dimension.type === "NUMBER") {
    const last = ordinalOf(dimension.until);
    const written = (ordinal: number) => (dimension.type === "DATE" ? dayOf(ordinal) : ordinal);
    for (let first = ordinalOf(dimension.from); first <= last; first += size) {
      yield { [name]: { from: written(first), until: written(Math.min(last, first + size - 1)) } };
    }
  } else if (dimension.type === "VALUES" && size > 1) {
    const { values } = dimension;
    for (let first = 0; first < values.length; first += size) {
      yield { [name]: { values: values.slice(first, first + size) } };
    }
    if (dimension.rest !== undefined) yield { [name]: { rest: "" } };
  } else {
    const step = nextStep([dimension], {});
    yield* step?.parts ?? [];
    if (step?.rest) yield step.rest;
  }
}

/** How many pieces there are, without the rest. */
export function pieceCount(dimension: DimensionSpec, size = 1): number {
  if ("values" in dimension) return Math.ceil(dimension.values.length / (dimension.type === "VALUES" ? size : 1));
  return Math.ceil((ordinalOf(dimension.until) - ordinalOf(dimension.from) + 1) / size);
}

/** The dimension that a list is divided by into ranges of pages, which no request reads. */
export const PAGES = "pages";

export interface PageRange {
  from: number;
  until: number;
}

/** The pages of a part of a list; undefined for all of them. */
export function pagesOf(part: Part | null): PageRange | undefined {
  return part?.[PAGES] as PageRange | undefined;
}

/** The part of an update that asks for what was quarantined, from one id to another. */
const QUARANTINE = "quarantined";

export function quarantinedPart(ids: readonly string[]): Part {
  return { [QUARANTINE]: { from: ids[0] ?? "", until: ids.at(-1) ?? "" } };
}

export function isOfQuarantine(part: Part | null): boolean {
  return part !== null && Object.hasOwn(part, QUARANTINE);
}

/** For people: `edat 2026-01-01 to 2026-03-31, type book`. */
export function shownPart(part: Part): string {
  return Object.entries(part)
    .map(([name, range]) => `${name} ${shownRange(range)}`)
    .join(", ");
}

function shownRange(range: PartRange): string {
  if ("value" in range) return range.value;
  if ("values" in range) return `${range.values[0]} to ${range.values.at(-1)}`;
  if ("rest" in range) return range.rest === "" ? "of no listed value" : `${range.rest} and no listed value`;
  return range.from === range.until ? String(range.from) : `${range.from} to ${range.until}`;
}
