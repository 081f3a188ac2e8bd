/** Formats `--help`: usage, description, flags, environment variables, examples. */
import type { Command, Family } from "./command.ts";
import { EXIT_CODES } from "./exit-codes.ts";
import { paint } from "./output.ts";

const LINE_WIDTH_MAX = 100;

export function commandHelp(path: string, command: Command): string {
  const { summary, details, flags, environment, examples } = command;
  return sections([
    ["", usageOf(path, command)],
    ["", wrap(`${summary}.`)],
    ["", paragraphs(details ?? "")],
    ["Flags", pairs(flags.map(({ usage, description }) => [usage, description]))],
    ["Settings from the environment", environment === undefined ? "" : pairs(lines(environment).map(splitPair))],
    ["Examples", indent(examples.map((example) => `$ ${example}`))],
  ]);
}

export function familyHelp(path: string, { summary, details, commands }: Family): string {
  const entries = Object.entries(commands);
  return sections([
    ["", `${path} COMMAND [flags]`],
    ["", wrap(`${summary}.`)],
    ["", paragraphs(details)],
    ["Commands", pairs(entries.map(([name, entry]) => [`${name} ${argsOf(entry)}`.trimEnd(), entry.summary]))],
    ["Exit codes", exitCodesHelp()],
    ["", `Each command has its own help: ${path} ${entries[0]?.[0]} --help`],
  ]);
}

function argsOf(entry: Command | Family): string {
  return "commands" in entry ? "COMMAND" : entry.args;
}

export function exitCodesHelp(): string {
  return pairs(EXIT_CODES.map(([code, meaning]) => [String(code), meaning]));
}

/** Omits sections without content. */
export function sections(parts: readonly (readonly [title: string, content: string])[]): string {
  return parts
    .filter(([, content]) => content !== "")
    .map(([title, content]) => (title === "" ? content : `${paint("bold", `${title}:`)}\n${content}`))
    .join("\n\n");
}

/** Two columns: names and meanings. */
export function pairs(rows: readonly (readonly [name: string, meaning: string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  const indentation = " ".repeat(width + 4);
  return rows.map(([name, meaning]) => `  ${name.padEnd(width)}  ${wrap(meaning, indentation)}`.trimEnd()).join("\n");
}

export function indent(rows: readonly string[]): string {
  return rows.map((row) => `  ${row}`).join("\n");
}

function usageOf(path: string, { args, flags, takesCommandLine }: Command): string {
  const required = flags.filter((flag) => flag.required).map((flag) => flag.usage);
  const words = [path, args, ...required, "[flags]", takesCommandLine ? "-- COMMAND [ARGUMENT...]" : ""];
  return words.filter((word) => word !== "").join(" ");
}

/** Wraps paragraphs; indented text, such as a script, is not changed. */
function paragraphs(text: string): string {
  return text
    .split("\n\n")
    .map((paragraph) => (paragraph.startsWith("  ") ? paragraph : wrap(paragraph.replaceAll("\n", " "))))
    .join("\n\n");
}

/** Breaks lines at words. The first one is `indentation.length` shorter too, for what stands before it. */
export function wrap(text: string, indentation = "", columns = helpWidth()): string {
  const width = columns - indentation.length;
  const rows: string[] = [];
  for (const word of text.split(" ")) {
    const row = rows.at(-1);
    if (row === undefined || row.length + 1 + word.length > width) rows.push(word);
    else rows[rows.length - 1] = `${row} ${word}`;
  }
  return rows.join(`\n${indentation}`);
}

function helpWidth(): number {
  return Math.min(LINE_WIDTH_MAX, process.stdout.columns ?? LINE_WIDTH_MAX);
}

function lines(text: string): string[] {
  return text.split("\n");
}

/** Splits `NAME   what it does`. */
function splitPair(line: string): [name: string, meaning: string] {
  const [name = "", meaning = ""] = line.split(/ {2,}/, 2);
  return [name, meaning];
}
