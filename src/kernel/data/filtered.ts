/**
 * Statements with optional filters. Only the conditions of the request are in the text, so that the planner can use their
 * indexes; each set of filters is a statement of its own, prepared when it is first used.
 */
import { type Statement, statement } from "./statement.ts";

export interface FilteredSpec<Filter> {
  name: string;
  /** The condition of each filter, with its parameter. */
  conditions: Readonly<Record<keyof Filter & string, (parameter: string) => string>>;
  /** `parameter(0)` is the first parameter after those of the filters. */
  text: (where: string, parameter: (index: number) => string) => string;
  /** An empty text is no filter. */
  emptyIsNone?: true;
}

/** Answers the statement for the filters that are given, with their values. */
export type Filtered<Filter, Row> = (filter: Filter) => { statement: Statement<Row>; values: unknown[] };

export function filtered<Filter extends object, Row>(spec: FilteredSpec<Filter>): Filtered<Filter, Row> {
  const names = Object.keys(spec.conditions) as (keyof Filter & string)[];
  const made = new Map<string, Statement<Row>>();
  const isGiven = (value: unknown) => value !== undefined && value !== null && !(spec.emptyIsNone && value === "");

  function make(code: string, given: readonly (keyof Filter & string)[]): Statement<Row> {
    const where = given.map((name, index) => spec.conditions[name](`$${index + 1}`)).join(" and ") || "true";
    const text = spec.text(where, (index) => `$${given.length + 1 + index}`);
    const one = statement<Row>(`${spec.name}.${code}`, text);
    made.set(code, one);
    return one;
  }

  return (filter) => {
    const given = names.filter((name) => isGiven(filter[name]));
    const code = given.map((name) => letterOf(names.indexOf(name))).join("") || "all";
    return { statement: made.get(code) ?? make(code, given), values: given.map((name) => filter[name]) };
  };
}

/** One letter per filter, by its place: the names of many filters together are longer than the name of a statement may be. */
function letterOf(index: number): string {
  return String.fromCharCode("a".charCodeAt(0) + index);
}
