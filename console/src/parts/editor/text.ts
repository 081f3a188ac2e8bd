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

export interface ReadText {
  /** Undefined if the text cannot be read, or does not have named fields. */
  value: Readonly<Record<string, unknown>> | undefined;
  problems: readonly Diagnostic[];
  /** A definition is stored without them. */
  hasComments: boolean;
  placeOf(where: Pick<Diagnostic, "path" | "line" | "column">): Place;
}

/** The page, the editor and its list of problems ask for the same text, one after another. */
const KEPT_MAX = 2;
const kept = new Map<string, ReadText>();

export function readText(text: string): ReadText {
  const known = kept.get(text);
  if (known) return known;
  const read = parse(text);
  kept.set(text, read);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
  return read;
}

function parse(text: string): ReadText {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const placeAt = (from: number, to = from): Place => {
    const { line, col } = lines.linePos(from);
    const end = text.indexOf("\n", from);
    const lineEnd = end === -1 ? text.length : end;
    return { line: Math.max(line, 1), column: Math.max(col, 1), from, to: Math.min(to > from ? to : lineEnd, lineEnd) };
  };
  const problems: Diagnostic[] = [...document.errors, ...document.warnings].map(({ pos, message }) => {
    const { line, column } = placeAt(pos[0]);
    return { message, severity: "error", line, column };
  });
  const value = problems.length === 0 ? valueOf(document, problems) : undefined;
  const seen = look(document);
  for (const from of seen.notJson) {
    const { line, column } = placeAt(from);
    problems.push({ message: "JSON has no such number.", severity: "error", line, column });
  }
  return {
    value,
    problems,
    hasComments: seen.hasComments,
    placeOf({ path, line, column = 1 }) {
      if (path) return placeAt(...rangeOf(document, path));
      const start = lines.lineStarts[(line ?? 1) - 1] ?? 0;
      return placeAt(Math.min(start + column - 1, text.length));
    },
  };
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

/** From the key of the value to its end. */
function rangeOf(document: Document, path: readonly string[]): [from: number, to: number] {
  let node: unknown = document.contents;
  let range: [number, number] = [0, 0];
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
      if (!pair) break;
      const [from] = ends(pair.key) ?? range;
      node = pair.value;
      range = [from, ends(node)?.[1] ?? ends(pair.key)?.[1] ?? from];
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      range = ends(node) ?? range;
    } else break;
  }
  return range;
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
