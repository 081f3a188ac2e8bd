/** The lines of a log and what is found in them: pure functions, apart from the page. */
import type { LogLine } from "../api.ts";

export interface Line {
  /** From 1. */
  no: number;
  at: string;
  level: string;
  text: string;
}

export interface Search {
  text: string;
  isRegex: boolean;
}

export type Level = "all" | "warn" | "error";

const ESCAPE = String.fromCharCode(27);
/** Colours and moves of the cursor, which programs print for terminals. */
const TERMINAL_CODES = new RegExp(`${ESCAPE}\\[[0-9;?]*[A-Za-z]`, "g");

/** A text of several lines becomes as many, since all rows have the same height. */
export function appended(lines: readonly Line[], items: readonly LogLine[]): Line[] {
  const all = [...lines];
  for (const { at, level, text } of items) {
    const plain = text.includes(ESCAPE) ? text.replaceAll(TERMINAL_CODES, "") : text;
    for (const part of plain.replace(/\r?\n$/, "").split(/\r?\n/))
      all.push({ no: all.length + 1, at, level, text: part });
  }
  return all;
}

export function ofLevel(lines: readonly Line[], level: Level): readonly Line[] {
  if (level === "all") return lines;
  return lines.filter((line) => line.level === "error" || (level === "warn" && line.level === "warn"));
}

export type Pattern = { find(text: string): Span[] } | undefined;
export interface Span {
  from: number;
  to: number;
}

/** Marks in one line; a line of a thousand matches would be a thousand elements. */
const SPANS_MAX = 50;

/** Undefined: nothing is looked for. Throws a SyntaxError for a bad regular expression. */
export function patternOf(text: string, isRegex: boolean): Pattern {
  if (text === "") return undefined;
  const expression = new RegExp(isRegex ? text : text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");
  return {
    find(line) {
      const spans: Span[] = [];
      for (const { 0: found, index } of line.matchAll(expression)) {
        if (found !== "") spans.push({ from: index, to: index + found.length });
        if (spans.length === SPANS_MAX) break;
      }
      return spans;
    },
  };
}

/** The places of the lines that match. */
export function matchesIn(lines: readonly Line[], pattern: Pattern): number[] {
  if (!pattern) return [];
  const places: number[] = [];
  for (const [place, { text }] of lines.entries()) if (pattern.find(text).length > 0) places.push(place);
  return places;
}

/** The lines from one to the other, in either order, as the address has them. */
export function addressOf(one: number, other: number): string {
  return one === other ? `L${one}` : `L${Math.min(one, other)}-${Math.max(one, other)}`;
}

/** `L120` or `L120-140`, as in the address. */
export function markedLines(text: string | undefined): { from: number; to: number } | undefined {
  const [, from, to] = /^L(\d{1,9})(?:-(\d{1,9}))?$/.exec(text ?? "") ?? [];
  if (from === undefined) return undefined;
  const ends = [Number(from), Number(to ?? from)].sort((one, other) => one - other);
  return { from: ends[0] ?? 0, to: ends[1] ?? 0 };
}
