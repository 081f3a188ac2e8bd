/**
 * The query language of Europe PMC, as far as harvests use it: words, `FIELD:value`, inclusive days as `FIELD:[A TO B]`, AND, OR,
 * NOT and parentheses. Words that follow one another must all be there. A word is searched in title and abstract.
 */
import { DAY_MS } from "../../kernel/time/units.ts";
import type { SimulatedRecord, TimeField } from "../common/records.ts";
import { extIdOf, sourceOf } from "./article.ts";

export type Condition = (record: SimulatedRecord) => boolean;

export interface ArticleQuery {
  matches: Condition;
  /** If the whole query is a range of one time, so that the rest need not be looked at. */
  range?: Range | undefined;
}

interface Range {
  field: TimeField;
  from: number;
  /** Included. */
  until: number;
}

const DATE_FIELDS: Readonly<Record<string, TimeField>> = {
  UPDATE_DATE: "updated",
  INDEX_DATE: "indexed",
  FIRST_IDATE: "created",
  CREATION_DATE: "created",
  FIRST_PDATE: "published",
};

/** Undefined for a query that cannot be read. */
export function readQuery(text: string): ArticleQuery | undefined {
  const tokens = text.match(/[A-Z_]+:\[[^\]]*\]|[A-Z_]+:"[^"]*"|"[^"]*"|[()]|[^\s()]+/g) ?? [];
  let at = 0;
  let range: Range | undefined;
  const matches = alternatives();
  if (!matches || at < tokens.length) return undefined;
  return { matches, range: tokens.length === 1 ? range : undefined };

  function alternatives(): Condition | undefined {
    let found = sequence();
    while (found && tokens[at] === "OR") {
      at += 1;
      const [one, other] = [found, sequence()];
      found = other && ((record) => one(record) || other(record));
    }
    return found;
  }

  function sequence(): Condition | undefined {
    let found = term();
    while (found && at < tokens.length && tokens[at] !== ")" && tokens[at] !== "OR") {
      if (tokens[at] === "AND") at += 1;
      const [one, other] = [found, term()];
      found = other && ((record) => one(record) && other(record));
    }
    return found;
  }

  function term(): Condition | undefined {
    const token = tokens[at];
    if (token === undefined || token === ")" || token === "AND" || token === "OR") return undefined;
    at += 1;
    if (token === "NOT") {
      const refused = term();
      return refused && ((record) => !refused(record));
    }
    if (token === "(") {
      const inner = alternatives();
      if (tokens[at] !== ")") return undefined;
      at += 1;
      return inner;
    }
    return single(token);
  }

  function single(token: string): Condition | undefined {
    const [, field, value = ""] = /^([A-Z_]+):(.*)$/.exec(token) ?? [];
    if (field === undefined) return withText(token);
    const time = DATE_FIELDS[field];
    if (time === undefined) return withValue(field, value);
    range = rangeOf(time, value);
    const { from, until } = range ?? { from: Number.NaN, until: Number.NaN };
    return range && ((record) => record[time] >= from && record[time] <= until);
  }
}

function rangeOf(field: TimeField, value: string): Range | undefined {
  const [, first, last] = /^\[(\S+) TO (\S+)\]$/.exec(value) ?? ["", value, value];
  const dayOf = (text = "", open: number) => (text === "*" ? open : Date.parse(text));
  const [from, until] = [dayOf(first, -Infinity), dayOf(last, Infinity)];
  return Number.isNaN(from) || Number.isNaN(until) ? undefined : { field, from, until: until + DAY_MS - 1 };
}

function withText(token: string): Condition {
  const word = token.replaceAll('"', "").toLowerCase();
  return ({ title, abstract }) => title.toLowerCase().includes(word) || abstract.toLowerCase().includes(word);
}

function withValue(field: string, value: string): Condition {
  const plain = value.replaceAll('"', "");
  switch (field) {
    case "SRC":
      return (record) => sourceOf(record) === plain;
    case "EXT_ID":
      // In quotes it finds nothing, as in the real service.
      return (record) => extIdOf(record) === value;
    case "PUB_TYPE":
      return () => plain.toLowerCase() === "journal article";
    default:
      return () => false;
  }
}
