/** What a value of a document is as text, number or truth, whether it came from JSON or XML. */
import { isRecord } from "../../kernel/json/is-record.ts";
import { unmarked } from "./numbers.ts";

const WHOLE = /^\d{1,15}$/;

/** Undefined if the value is a list, an object or nothing. An element of XML is its text, without that of comments. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return unmarked(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (!isRecord(value)) return undefined;
  return typeof value["#text"] === "string" ? value["#text"] : undefined;
}

/** Trimmed, and undefined if nothing is left. */
export function wordOf(value: unknown): string | undefined {
  return textOf(value)?.trim() || undefined;
}

/** A number of records, which some sources write as text. */
export function countOf(value: unknown): number | undefined {
  const text = wordOf(value);
  return text !== undefined && WHOLE.test(text) ? Number(text) : undefined;
}

const TRUTHS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["y", true],
  ["yes", true],
  ["false", false],
  ["0", false],
  ["n", false],
  ["no", false],
]);

export function truthOf(value: unknown): boolean | undefined {
  return TRUTHS.get(wordOf(value)?.toLowerCase() ?? "");
}
