/** Dimensions of the ladder: each has the fields that divide it, requests read it, and the source counts its parts. */
import { DAY_MS } from "../../../kernel/time/units.ts";
import type { Dimension } from "../../definition/slicing-policy.ts";
import { compileFragment, FRAGMENT_MEMBERS } from "../../slice/fragments.ts";
import { PAGES, pieceCount } from "../../slice/parts.ts";
import { isTimeFormat, missingParts } from "../time-format.ts";
import type { CheckInput, Finding } from "./check.ts";
import { fieldsReading } from "./check.ts";
import { forbiddenCalls, unknownMembers } from "./expressions.ts";

type Field = "from" | "until" | "format" | "values" | "depth" | "rest";
/** The fields of each type, and whether they are required. */
const FIELDS: Readonly<Record<Dimension["type"], Readonly<Partial<Record<Field, boolean>>>>> = {
  DATE: { from: true, until: true, format: false },
  NUMBER: { from: true, until: true },
  VALUES: { values: true, rest: false },
  PREFIX: { values: true, depth: false, rest: false },
};
const ALL: readonly Field[] = ["from", "until", "format", "values", "depth", "rest"];

interface Placed {
  /** Its path in the policy. */
  at: string;
  dimension: Dimension;
}

function placed({ policy: { slicing } }: CheckInput): Placed[] {
  return [
    ...(slicing?.ids ? [{ at: "slicing.ids", dimension: slicing.ids }] : []),
    ...(slicing?.ladder ?? []).map((dimension, index) => ({ at: `slicing.ladder[${index}]`, dimension })),
  ];
}

/** `by` has the fields that it needs, and none of another. */
export function* strategyIsComplete({
  policy: { slicing, window, pagination, response },
}: CheckInput): Iterable<Finding> {
  if (!slicing) return;
  const { by = "TIME", pages, ids, size } = slicing;
  for (const [field, value, strategy] of [
    ["pages", pages, "PAGE"],
    ["ids", ids, "ID"],
    ["size", size, "ID"],
  ] as const) {
    if (value !== undefined && by !== strategy) {
      yield { field: `slicing.${field}`, reason: `It belongs to ${strategy}, and slices are by ${by}.` };
    }
  }
  if (by === "PAGE") {
    const { type } = pagination;
    if (pages === undefined) yield { field: "slicing.pages", reason: "PAGE needs it: the pages of one slice." };
    if (type !== undefined && type !== "OFFSET" && type !== "PAGE") {
      yield {
        field: "slicing.by",
        reason: `PAGE needs pages that can be asked for in any order: OFFSET or PAGE, not ${type}.`,
      };
    }
    if (response.totalPath === undefined && window?.probe === undefined) {
      yield {
        field: "slicing.by",
        reason: "PAGE needs a total (`response.totalPath`), to know how many pages there are.",
      };
    }
  }
  if (by === "ID") {
    if (ids === undefined) yield { field: "slicing.ids", reason: "ID needs it: the ids that there are." };
    if (window)
      yield { field: "slicing.by", reason: "ID is for endpoints that know no time, and this one has a `window`." };
  }
}

/** All slices of a plan by ids are made at once. */
const ID_SLICES_MAX = 9_999;
export function* idsAreFew({ policy: { slicing } }: CheckInput): Iterable<Finding> {
  const { ids, size } = slicing ?? {};
  if (slicing?.by !== "ID" || !ids) return;
  const isRange = ids.type === "DATE" || ids.type === "NUMBER";
  if (isRange && size === undefined) {
    yield { field: "slicing.size", reason: `${ids.type} needs it: how many of them one slice has.` };
    return;
  }
  if (ids.type === "PREFIX" && size !== undefined) {
    yield { field: "slicing.size", reason: "A slice of PREFIX has one prefix." };
  }
  const { from, until, values } = ids;
  const isComplete = isRange ? from !== undefined && until !== undefined : values !== undefined;
  const count = isComplete ? pieceCount(ids as Parameters<typeof pieceCount>[0], size) : 0;
  if (count > ID_SLICES_MAX) {
    yield { field: "slicing.size", reason: `There would be ${count} slices; ${ID_SLICES_MAX} is the limit.` };
  }
}

export function* dimensionsAreComplete(input: CheckInput): Iterable<Finding> {
  const all = placed(input);
  for (const { at, dimension } of all) {
    const { name, type } = dimension;
    if (all.find((other) => other.dimension.name === name)?.at !== at) {
      yield { field: `${at}.name`, reason: `There are two dimensions \`${name}\`.` };
    }
    if (name === PAGES) yield { field: `${at}.name`, reason: "Ranges of pages have this name: take another." };
    for (const field of ALL) {
      const isRequired = FIELDS[type][field];
      if (dimension[field] === undefined) {
        if (isRequired) yield { field: `${at}.${field}`, reason: `${type} needs it.` };
      } else if (isRequired === undefined) {
        const types = Object.entries(FIELDS).filter(([, fields]) => Object.hasOwn(fields, field));
        const names = types.map(([one]) => one).join(" and ");
        yield { field: `${at}.${field}`, reason: `It belongs to ${names}, and the type is ${type}.` };
      }
    }
  }
}

export function* rangesAreRanges(input: CheckInput): Iterable<Finding> {
  for (const { at, dimension } of placed(input)) {
    const { type, from, until, format = "yyyy-MM-dd" } = dimension;
    if (type !== "DATE" && type !== "NUMBER") continue;
    const rule = type === "DATE" ? "a day, such as 1900-01-01" : "a whole number";
    const bounds = { from, until };
    const wrong = (["from", "until"] as const).filter((name) => {
      const bound = bounds[name];
      return bound !== undefined && !(type === "DATE" ? isDay(bound) : Number.isSafeInteger(bound));
    });
    for (const name of wrong) yield { field: `${at}.${name}`, reason: `It is not ${rule}.` };
    if (wrong.length === 0 && from !== undefined && until !== undefined && from > until) {
      yield { field: `${at}.until`, reason: "It is before `from`." };
    }
    if (type !== "DATE") continue;
    if (!isTimeFormat(format)) {
      yield {
        field: `${at}.format`,
        reason: `\`${format}\` is not a format. Write yyyy, MM and dd with signs between them.`,
      };
      continue;
    }
    const missing = missingParts(format, DAY_MS);
    if (missing.length > 0) {
      const reason = `\`${format}\` has no ${missing.join(" and ")}, so days cannot be told apart.`;
      yield { field: `${at}.format`, reason };
    }
  }
}

/** A prefix of a value would be counted twice. */
export function* valuesAreApart(input: CheckInput): Iterable<Finding> {
  for (const { at, dimension } of placed(input)) {
    if (dimension.type !== "PREFIX") continue;
    const { values = [] } = dimension;
    const within = values.find((one) => values.some((other) => other !== one && other.startsWith(one)));
    if (within === undefined) continue;
    yield { field: `${at}.values`, reason: `\`${within}\` is the beginning of another value, so they share records.` };
  }
}

export function* fragmentsCompile(input: CheckInput): Iterable<Finding> {
  const allowed = new Set(input.policy.expr.allowedFunctions);
  for (const { at, dimension } of placed(input)) {
    const texts = { fragment: dimension.fragment, ...(dimension.rest === undefined ? {} : { rest: dimension.rest }) };
    for (const [name, text] of Object.entries(texts)) {
      const field = `${at}.${name}`;
      const compiled = compileFragment(text);
      if ("problems" in compiled) {
        yield* compiled.problems.map(({ message }) => ({ field, reason: message }));
        continue;
      }
      const { template } = compiled;
      if (template.secrets.size > 0) yield { field, reason: "It inserts a secret, which only `auth` may send." };
      yield* forbiddenCalls(field, template.calls, allowed);
      yield* unknownMembers(field, FRAGMENT_MEMBERS, (variable) => template.membersOf(variable));
      if (!template.references.has("range")) {
        yield { field, reason: "It does not use `range`, so all parts would ask for the same records." };
      }
    }
  }
}

/** Without it, every part would ask for the same records. */
export function* partsAreAskedFor(input: CheckInput): Iterable<Finding> {
  if (!input.allCompile || input.isDetail) return;
  for (const { at, dimension } of placed(input)) {
    if (fieldsReading(input, "parts", dimension.name).length > 0) continue;
    yield { field: `${at}.name`, reason: `No template of the request uses \`parts.${dimension.name}\`.` };
  }
}

/** The sums of parts are what shows that none is left out. */
export function* partsAreCounted(input: CheckInput): Iterable<Finding> {
  const { slicing, window, pagination, response } = input.policy;
  if (slicing?.ladder === undefined) return;
  if (response.totalPath === undefined && window?.probe === undefined) {
    yield {
      field: "slicing.ladder",
      reason: "The source announces no total (`response.totalPath` or `window.probe`), so parts cannot be verified.",
    };
  }
  if (window?.recordsMax === undefined && pagination.maxPage === undefined) {
    yield {
      field: "slicing.ladder",
      reason: "The source has neither `window.recordsMax` nor `pagination.maxPage`, so nothing has to be divided.",
    };
  }
}

function isDay(bound: string | number): boolean {
  if (typeof bound !== "string" || !/^\d{4}-\d\d-\d\d$/.test(bound)) return false;
  const ms = Date.parse(bound);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(bound);
}
