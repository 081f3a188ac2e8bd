/**
 * The text of a definition: YAML, and so JSON as well. Says what the text means, what is wrong with it, and where a value of it
 * stands, because the server names values by their path and a person looks for a line.
 */
import { Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";

/** What is wrong with a text, and where. Without a place it is about the whole text. */
export interface Diagnostic {
  message: string;
  severity: "error" | "warning";
  /** The steps to a value, such as `["nodes", "2", "cfg"]`; the nearest that exists is marked. */
  path?: readonly string[] | undefined;
  /** Counted from 1, in place of a path. */
  line?: number | undefined;
  column?: number | undefined;
}

export interface Place {
  line: number;
  column: number;
  /** Offsets in the text. A place never goes over the end of its line. */
  from: number;
  to: number;
}

/** What a text says, as plain data: a worker can answer it. */
export interface Parsed {
  /** Undefined if the text cannot be read, or does not have named fields. */
  value: Readonly<Record<string, unknown>> | undefined;
  problems: readonly Diagnostic[];
  /** A definition is stored without them. */
  hasComments: boolean;
  /** Where each line begins. */
  lineStarts: number[];
  /** Of each value, from its key to its end, by its path. */
  ranges: ReadonlyMap<string, Range>;
  /** The path of what an alias (`*name`) stands for, by the path of the alias. */
  aliases: ReadonlyMap<string, string>;
}
type Range = readonly [from: number, to: number];

export interface ReadText extends Parsed {
  placeOf(where: Pick<Diagnostic, "path" | "line" | "column">): Place;
}

/** The page, the editor and its list of problems ask for the same text, one after another. */
const KEPT_MAX = 2;
const kept = new Map<string, ReadText>();

export function readText(text: string): ReadText {
  const known = kept.get(text);
  if (known) return known;
  const read = withPlaces(text, parseText(text));
  kept.set(text, read);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
  return read;
}

export function withPlaces(text: string, parsed: Parsed): ReadText {
  const { lineStarts, ranges, aliases } = parsed;
  return {
    ...parsed,
    placeOf({ path, line, column = 1 }) {
      if (path) return placeIn(text, lineStarts, ...rangeOf(path, ranges, aliases));
      const start = lineStarts[(line ?? 1) - 1] ?? 0;
      return placeIn(text, lineStarts, Math.min(start + column - 1, text.length));
    },
  };
}

export function parseText(text: string): Parsed {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const { lineStarts } = lines;
  const problems: Diagnostic[] = [...document.errors, ...document.warnings].map(({ pos, message }) => {
    const { line, column } = placeIn(text, lineStarts, pos[0]);
    return { message, severity: "error", line, column };
  });
  const value = problems.length === 0 ? valueOf(document, problems) : undefined;
  const seen = look(document);
  for (const from of seen.notJson) {
    const { line, column } = placeIn(text, lineStarts, from);
    problems.push({ message: "JSON has no such number.", severity: "error", line, column });
  }
  return { value, problems, hasComments: seen.hasComments, lineStarts, ...rangesIn(document) };
}

function placeIn(text: string, lineStarts: number[], from: number, to = from): Place {
  const { line, col } = Object.assign(new LineCounter(), { lineStarts }).linePos(from);
  const end = text.indexOf("\n", from);
  const lineEnd = end === -1 ? text.length : end;
  return { line: Math.max(line, 1), column: Math.max(col, 1), from, to: Math.min(to > from ? to : lineEnd, lineEnd) };
}

function valueOf(document: Document, problems: Diagnostic[]): ReadText["value"] {
  let value: unknown;
  try {
    value = document.toJS() ?? {};
  } catch {
    // Nested aliases: a few lines can expand to more than the memory holds.
    problems.push({ message: "Its aliases (`*name`) repeat too much.", severity: "error" });
    return undefined;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as ReadText["value"];
  problems.push({ message: "It must have named fields: `name: ...`.", severity: "error", line: 1 });
  return undefined;
}

/** Comments, and numbers such as `.inf` that would be sent as null. */
function look(document: Document): { hasComments: boolean; notJson: readonly number[] } {
  let hasComments = Boolean(document.commentBefore ?? document.comment);
  const notJson: number[] = [];
  visit(document, {
    Node(_, node) {
      if (!isAlias(node) && (node.comment ?? node.commentBefore)) hasComments = true;
      if (isScalar(node) && typeof node.value === "number" && !Number.isFinite(node.value))
        notJson.push(node.range?.[0] ?? 0);
    },
  });
  return { hasComments, notJson };
}

const ROOT = "";
const inside = (path: string, step: string | number) => `${path}\u0000${step}`;

/** Of the value that a path leads to, or of the nearest above it. */
function rangeOf(path: readonly string[], ranges: Parsed["ranges"], aliases: Parsed["aliases"]): Range {
  let at = ROOT;
  let range: Range = [0, 0];
  for (const step of path) {
    at = inside(aliases.get(at) ?? at, step);
    const found = ranges.get(at);
    if (!found) break;
    range = found;
  }
  return range;
}

function rangesIn(document: Document): Pick<Parsed, "ranges" | "aliases"> {
  const ranges = new Map<string, Range>();
  const aliases = new Map<string, string>();
  const anchors = new Map<string, string>();
  function walk(node: unknown, path: string): void {
    if (isAlias(node)) {
      const target = anchors.get(node.source);
      if (target !== undefined) aliases.set(path, target);
    } else if (isNode(node) && "anchor" in node && typeof node.anchor === "string") anchors.set(node.anchor, path);
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        const [from, to] = ends(key) ?? [];
        if (!isScalar(key) || from === undefined || to === undefined) continue;
        const below = inside(path, String(key.value));
        if (!ranges.has(below)) ranges.set(below, [from, ends(value)?.[1] ?? to]);
        walk(value, below);
      }
    } else if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) {
        const range = ends(item);
        const below = inside(path, index);
        if (range) ranges.set(below, range);
        walk(item, below);
      }
    }
  }
  walk(document.contents, ROOT);
  return { ranges, aliases };
}

function ends(node: unknown): [number, number] | undefined {
  return isNode(node) && node.range ? [node.range[0], node.range[1]] : undefined;
}

const LINE_MAX = 72;

/** YAML with short lists on one line and long texts as blocks. */
export function yamlText(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Seq(_, list) {
      const isPlain = list.items.every((item) => isScalar(item) && !String(item.value).includes("\n"));
      if (isPlain && list.items.map(String).join(", ").length < LINE_MAX) list.flow = true;
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}
