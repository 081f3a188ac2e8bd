/** The difference between a file and the server, as text to confirm. */

import { isRecord } from "../../kernel/json/is-record.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { paint, printable, type Style } from "../common/output.ts";
import type { Change, FieldChange } from "./plan.ts";

const STYLES = {
  create: "green",
  change: "yellow",
  publish: "green",
  unpublish: "yellow",
  unchanged: "dim",
} as const satisfies Record<Change["action"], Style>;

/** A rewritten query can be longer; the rest is in the file. */
const LINES_SHOWN = 40;

export function differenceText(changes: readonly Change[]): string {
  const width = Math.max(...changes.map(({ action }) => action.length));
  return changes
    .flatMap(({ action, kind, name, fields }) => [
      `${paint(STYLES[action], action.padEnd(width))}  ${kind} ${printable(name)}`,
      ...(action === "change" ? fields : []).flatMap(fieldLines).map((line) => `${" ".repeat(width + 4)}${line}`),
    ])
    .join("\n");
}

function fieldLines({ field, from, to }: FieldChange): string[] {
  if (field === "secret") return ["secret (not shown)"];
  if (Array.isArray(from) && Array.isArray(to))
    return [`${field}:`, ...changedItems(from.map(inWords), to.map(inWords))];
  if (isLong(from) || isLong(to)) return [`${field}:`, ...changedLines(linesOf(from), linesOf(to))];
  return [`${field}: ${inWords(from)} -> ${inWords(to)}`];
}

/** The removed and added items of a list. */
function changedItems(from: readonly string[], to: readonly string[]): string[] {
  return [
    ...from.filter((item) => !to.includes(item)).map((item) => removed(item)),
    ...to.filter((item) => !from.includes(item)).map((item) => added(item)),
  ];
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

/** Omits fields of a dependency that have their default. */
function inWords(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (!isRecord(value)) return printable(typeof value === "string" ? value : JSON.stringify(value));
  const fields = Object.entries(value).filter(([, part]) => part !== null && part !== false && part !== 0);
  return fields.map(([name, part]) => `${name}: ${inWords(part)}`).join(", ");
}
