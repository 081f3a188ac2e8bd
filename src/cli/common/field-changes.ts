/** A changed field of a definition, as lines of text: `priority: 5 -> 7`, or what was removed from a list or a text and added. */

import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../../kernel/json/is-record.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { paint, printable } from "./output.ts";

export interface FieldChange {
  field: string;
  /** Undefined for a new field. */
  from?: unknown;
  /** Undefined for a removed field. */
  to?: unknown;
}

/** A rewritten query can be longer; the rest is in the file. */
const LINES_SHOWN = 40;

export function fieldLines({ field: name, from, to }: FieldChange): string[] {
  const field = printable(name);
  // The database keeps the keys of an object in an order of its own.
  const order = keysIn([to, from]);
  const inWords = (value: unknown) => wordsOf(value, order);
  if (Array.isArray(from) && Array.isArray(to)) return [`${field}:`, ...changedItems(from, to, inWords)];
  if (isLong(from) || isLong(to)) return [`${field}:`, ...changedLines(linesOf(from), linesOf(to))];
  return [`${field}: ${inWords(from)} -> ${inWords(to)}`];
}

/** The removed and added items of a list. */
function changedItems(from: readonly unknown[], to: readonly unknown[], inWords: (item: unknown) => string): string[] {
  const isIn = (items: readonly unknown[], item: unknown) => items.some((other) => isDeepStrictEqual(other, item));
  const lines = [
    ...from.filter((item) => !isIn(to, item)).map((item) => removed(inWords(item))),
    ...to.filter((item) => !isIn(from, item)).map((item) => added(inWords(item))),
  ];
  return lines.length > 0 ? lines : ["  the same items, in another order or number"];
}

/** Without unchanged lines at both ends. */
function changedLines(from: readonly string[], to: readonly string[]): string[] {
  let start = 0;
  while (start < from.length && start < to.length && from[start] === to[start]) start += 1;
  let end = 0;
  while (end < Math.min(from.length, to.length) - start && from.at(-1 - end) === to.at(-1 - end)) end += 1;
  const lines = [
    ...from.slice(start, from.length - end).map((line) => removed(printable(line))),
    ...to.slice(start, to.length - end).map((line) => added(printable(line))),
  ];
  const more = lines.length - LINES_SHOWN;
  return more > 0 ? [...lines.slice(0, LINES_SHOWN), `  and ${counted(more, "more line")}`] : lines;
}

const removed = (line: string) => paint("red", `  - ${line}`);
const added = (line: string) => paint("green", `  + ${line}`);

function isLong(value: unknown): value is string {
  return typeof value === "string" && value.includes("\n");
}

function linesOf(value: unknown): string[] {
  return typeof value === "string" ? value.trimEnd().split("\n") : [];
}

/** The keys of all objects in the values, each once, as they come. */
function keysIn(values: readonly unknown[]): string[] {
  const keys = new Set<string>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item);
    if (!isRecord(value)) return;
    for (const [key, part] of Object.entries(value)) {
      keys.add(key);
      visit(part);
    }
  };
  for (const value of values) visit(value);
  return [...keys];
}

/** Objects with their keys in this order. Omits fields of a dependency that have their default. */
function wordsOf(value: unknown, order: readonly string[]): string {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return printable(JSON.stringify(value.map((item) => inOrder(item, order))));
  if (!isRecord(value)) return printable(typeof value === "string" ? value : JSON.stringify(value));
  const fields = order
    .filter((name) => Object.hasOwn(value, name))
    .map((name) => [name, value[name]] as const)
    .filter(([, part]) => part !== null && part !== false && part !== 0);
  return fields.map(([name, part]) => `${name}: ${wordsOf(part, order)}`).join(", ");
}

function inOrder(value: unknown, order: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((item) => inOrder(item, order));
  if (!isRecord(value)) return value;
  const names = order.filter((name) => Object.hasOwn(value, name));
  return Object.fromEntries(names.map((name) => [name, inOrder(value[name], order)]));
}
