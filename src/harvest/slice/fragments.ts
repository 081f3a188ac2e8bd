/** The fragments of requests that ask for a part: one for each dimension, null for those that the part is not divided by. */
import { compileTemplate, type Template } from "../../kernel/expressions/template.ts";
import { REQUEST_FUNCTIONS } from "../spec/functions.ts";
import type { DimensionSpec } from "../spec/snapshot.ts";
import { formatTime } from "../spec/time-format.ts";
import { after, type Part, type PartRange } from "./parts.ts";

/** What a fragment may use. */
const FRAGMENT_VARIABLES = ["range"] as const;
export const FRAGMENT_MEMBERS = { range: ["from", "until", "to", "value", "values"] } as const;

export type Fragments = Readonly<Record<string, unknown>>;

export function compileFragment(text: string): ReturnType<typeof compileTemplate> {
  return compileTemplate(text, FRAGMENT_VARIABLES, { functions: REQUEST_FUNCTIONS });
}

/** For dimensions that have been checked, so their fragments compile. */
export function compileFragments(dimensions: readonly DimensionSpec[]): (part: Part | null) => Fragments {
  const compiled = dimensions.map((dimension) => ({
    dimension,
    fragment: templateOf(dimension.fragment),
    rest: "rest" in dimension && dimension.rest !== undefined ? templateOf(dimension.rest) : undefined,
  }));
  return (part) =>
    Object.fromEntries(
      compiled.map(({ dimension, fragment, rest }) => {
        const range = part?.[dimension.name];
        const template = range && "rest" in range ? rest : fragment;
        return [dimension.name, range && template ? template.render({ range: valuesOf(dimension, range) }) : null];
      }),
    );
}

function templateOf(text: string): Template {
  const compiled = compileFragment(text);
  if ("template" in compiled) return compiled.template;
  throw new Error(compiled.problems[0]?.message);
}

const NONE = { from: null, until: null, to: null, value: null, values: null };

function valuesOf(dimension: DimensionSpec, range: PartRange): Readonly<Record<string, unknown>> {
  if ("value" in range) return { ...NONE, value: range.value };
  if ("values" in range) return { ...NONE, values: range.values };
  if ("rest" in range) {
    const values = "values" in dimension ? dimension.values.map((value) => range.rest + value) : [];
    return { ...NONE, value: range.rest, values };
  }
  const { from, until } = range;
  const write = (bound: string | number) =>
    dimension.type === "DATE" ? formatTime(Date.parse(String(bound)), dimension.format, "UTC") : bound;
  return { ...NONE, from: write(from), until: write(until), to: write(after(until)) };
}
