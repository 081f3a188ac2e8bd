/** Reads the optional YAML file with structured settings, with positions, so that errors can name a line and a column. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type YAMLError,
} from "yaml";
import { isRecord } from "../json/is-record.ts";

export interface ConfigFile {
  content: Record<string, unknown>;
  /** `millrace.yaml:3:5`: the start of the value at `path`, or of its nearest existing parent. */
  place(path: readonly string[]): string;
}

const DEFAULT_NAME = "millrace.yaml";

/** The content of the file, or the reasons why it cannot be read. Empty if there is no file. */
export function readConfigFile(configured: string | undefined, cwd: string): ConfigFile | { problems: string[] } {
  const name = configured ?? DEFAULT_NAME;
  try {
    return parseConfigText(name, readFileSync(resolve(cwd, name), "utf8"));
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    if (error.code !== "ENOENT") return { problems: [`${name} cannot be read: ${error.message}.`] };
    if (configured === undefined) return { content: {}, place: () => name };
    return { problems: [`${name} does not exist, but MILLRACE_CONFIG or --config names it.`] };
  }
}

/** Parses YAML, and so JSON as well. `name` is the file name in error messages. */
export function parseConfigText(name: string, text: string): ConfigFile | { problems: string[] } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${name}:${line}:${col}`;
  };
  // One wrong indent is several errors of the parser: those that follow it name lines that are right.
  const [error] = [...document.errors, ...document.warnings];
  if (error) return { problems: [`${place(error.pos[0])}: ${notYaml(error)}`] };
  let content: unknown;
  try {
    content = document.toJS() ?? {};
  } catch {
    // Nested aliases: a few lines can expand to more than the memory holds.
    return { problems: [`${place(0)}: the file's aliases (\`*name\`) repeat too much.`] };
  }
  if (!isRecord(content)) {
    return { problems: [`${place(0)}: the file must have named sections: \`name:\` with settings below it.`] };
  }
  return { content, place: (path) => place(offsetOf(document, path)) };
}

const IN_WORDS: Readonly<Partial<Record<ErrorCode, string>>> = {
  BAD_INDENT: "the indent of this line fits none of the lines above it",
  TAB_AS_INDENT: "this line is indented with a tab. Use spaces",
  BLOCK_AS_IMPLICIT_KEY:
    "this value has a second key in it. Either the next line is indented too far, or text with `: ` needs quotes",
  MULTILINE_IMPLICIT_KEY: "this is no key. A key has `:` and a space behind it",
  DUPLICATE_KEY: "this key is there twice",
};

/** The parser's own words are for those who know the grammar of YAML. */
function notYaml({ code, message }: YAMLError): string {
  // A list or a group in brackets that is not closed is found at the next line.
  const isOfLine = code !== "BAD_INDENT" || !message.startsWith("Flow");
  return `this is not valid YAML: ${(isOfLine ? IN_WORDS[code] : undefined) ?? withoutExcerpt(message)}.`;
}

/** The parser ends some messages with an excerpt of the file, after a colon, which could be a password. */
function withoutExcerpt(message: string): string {
  return message.replace(/(?<=[\w)]): .*$/s, "");
}

function offsetOf(document: Document, path: readonly string[]): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
      if (!pair) break;
      offset = startOf(pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      offset = startOf(node) ?? offset;
    }
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
