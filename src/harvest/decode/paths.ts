/**
 * JSONPath (RFC 9535), compiled once for the thousands of records that it reads. A path of names, indexes and `[*]` becomes a
 * walk; the library evaluates the others, which takes about twenty times as long.
 */
import { JSONPathEnvironment, type JSONPathQuery } from "json-p3";
import { messageOf } from "../../kernel/text/message-of.ts";

export interface Path {
  readonly text: string;
  /** It selects at most one value of any document. */
  readonly singular: boolean;
  /** The steps of a path without filters, slices and `..`; undefined for others. */
  readonly steps: readonly Step[] | undefined;
  /** The first value in document order; undefined if there is none. */
  first(root: unknown): unknown;
  all(root: unknown): unknown[];
  /** Where the values are, for the removal of them. The root itself has no place. */
  places(root: unknown): Place[];
}

/** A name of an object, an index of a list, or all members of either. */
export type Step = string | number | typeof EVERY;
export interface Place {
  parent: Record<string, unknown> | unknown[];
  key: string | number;
}
export const EVERY = Symbol("[*]");

/** A path that is not valid, or that could take too long. */
export class PathError extends Error {
  override readonly name = "PathError";
}

const LENGTH_MAX = 1_024;
const SIMPLE_STEP =
  /\.(?<dotted>[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)|\['(?<single>[^'\\]*)'\]|\["(?<double>[^"\\]*)"\]|\[(?<index>0|-?[1-9]\d{0,8})\]|(?<every>\.\*|\[\*\])/y;
const QUOTED = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g;

// Deeper than any document that is decoded.
const environment = new JSONPathEnvironment({ maxRecursionDepth: 300 });
// Their patterns are those of JavaScript, and a bad one never ends.
environment.functionRegister.delete("match");
environment.functionRegister.delete("search");

export function optionalPath(text: string | undefined): Path | undefined {
  return text === undefined ? undefined : compilePath(text);
}

export function compilePath(text: string): Path {
  if (text.length > LENGTH_MAX) throw new PathError(`A path has at most ${LENGTH_MAX} characters.`);
  const steps = simpleSteps(text);
  return steps ? walk(text, steps) : query(text);
}

function simpleSteps(text: string): Step[] | undefined {
  if (!text.startsWith("$")) return undefined;
  const steps: Step[] = [];
  SIMPLE_STEP.lastIndex = 1;
  while (SIMPLE_STEP.lastIndex < text.length) {
    const { dotted, single, double, index } = SIMPLE_STEP.exec(text)?.groups ?? {};
    if (SIMPLE_STEP.lastIndex === 0) return undefined;
    steps.push(dotted ?? single ?? double ?? (index === undefined ? EVERY : Number(index)));
  }
  return steps;
}

function walk(text: string, steps: readonly Step[]): Path {
  const singular = !steps.includes(EVERY);
  const last = steps.at(-1);

  function first(root: unknown): unknown {
    let value = root;
    for (const step of steps as readonly (string | number)[]) {
      value = member(value, step);
      if (value === undefined) return undefined;
    }
    return value;
  }

  return {
    text,
    singular,
    steps,
    first: singular ? first : (root) => selected(root, steps)[0],
    all: (root) => selected(root, steps),
    places: (root) => {
      if (last === undefined) return [];
      const parents = selected(root, steps.slice(0, -1));
      return parents.flatMap((parent) =>
        keysOf(parent, last).map((key) => ({ parent: parent as Place["parent"], key })),
      );
    },
  };
}

function selected(root: unknown, steps: readonly Step[]): unknown[] {
  let values = [root];
  for (const step of steps) {
    const next: unknown[] = [];
    for (const value of values) {
      if (step === EVERY) for (const one of membersOf(value)) next.push(one);
      else {
        const found = member(value, step);
        if (found !== undefined) next.push(found);
      }
    }
    values = next;
  }
  return values;
}

/** A name selects nothing of a list, nor an index of an object; and inherited members, such as `constructor`, are none. */
function member(value: unknown, step: string | number): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) return typeof step === "number" ? value.at(step) : undefined;
  if (typeof step === "number" || !Object.hasOwn(value, step)) return undefined;
  return (value as Record<string, unknown>)[step];
}

function membersOf(value: unknown): unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Array.isArray(value) ? value : Object.values(value);
}

function keysOf(parent: unknown, step: Step): (string | number)[] {
  if (typeof parent !== "object" || parent === null) return [];
  if (step === EVERY) return Array.isArray(parent) ? [...parent.keys()] : Object.keys(parent);
  if (member(parent, step) === undefined) return [];
  return [typeof step === "number" && step < 0 ? step + (parent as unknown[]).length : step];
}

function query(text: string): Path {
  const descents = text.replaceAll(QUOTED, "").split("..").length - 1;
  if (descents > 1) throw new PathError(`\`${text}\` contains \`..\` more than once, which takes too long.`);
  let compiled: JSONPathQuery;
  try {
    compiled = environment.compile(text);
  } catch (error) {
    throw new PathError(`\`${text}\` is not a valid JSONPath: ${messageOf(error)}.`);
  }
  return {
    text,
    singular: compiled.singularQuery(),
    steps: undefined,
    first: (root) => compiled.match(root as never)?.value,
    all: (root) => compiled.query(root as never).values(),
    places: (root) =>
      compiled.query(root as never).nodes.flatMap(({ location }) => {
        const key = location.at(-1);
        if (key === undefined) return [];
        return [{ parent: location.slice(0, -1).reduce(member, root) as Place["parent"], key }];
      }),
  };
}
