/**
 * Templates: JSON in which any string may contain `${...}` with a CEL expression. A string that is one expression becomes its
 * value, with its type; inside other text the value is inserted as text. `$${` is a literal `${`. Keys are not templates.
 *
 * `${secrets.NAME}` is not an expression: secrets can be inserted but not computed with. So the secrets that a template needs are
 * known before it is rendered, and no condition can leak them.
 *
 * null cannot be inserted into text: neither "null" nor an empty text is what the author of a URL or a query wants, so rendering
 * fails. On its own (`"${params.x}"`), null is a value like any other.
 */

import { SECRET_NAME } from "../secrets/named-secrets.ts";
import {
  compileExpression,
  type Expression,
  ExpressionError,
  type FunctionSet,
  membersIn,
  type Path,
  quoted,
} from "./cel.ts";

type Values = Readonly<Record<string, unknown>>;
type Render = (values: Values) => unknown;

export interface Template {
  /** It contains no expression and always renders to the same value. */
  readonly isConstant: boolean;
  /** The variables that its expressions use. */
  readonly references: ReadonlySet<string>;
  /** The functions, methods and macros that they call. */
  readonly calls: ReadonlySet<string>;
  /** The names of the secrets that it inserts; `render` needs them as `secrets`, a Map. */
  readonly secrets: ReadonlySet<string>;
  /** The members of `variable` that its expressions name, or undefined if they are known only when it is rendered. */
  membersOf(variable: string): ReadonlySet<string> | undefined;
  /** The paths below `variable` that its expressions read, as in an Expression. */
  pathsOf(variable: string): readonly Path[];
  /** A new JSON value. Throws an ExpressionError. */
  render(values: Values): unknown;
}

export interface TemplateOptions {
  functions?: FunctionSet;
  /** Encodes the text of a value that is inserted into other text, as for a segment of a path. */
  encode?: (text: string) => string;
}

interface TemplateProblem {
  /** The path of the string, such as `headers.x-a[0]`; empty for the value itself. */
  readonly path: string;
  readonly message: string;
}

const SECRET = new RegExp(`^\\s*secrets\\.(${SECRET_NAME})\\s*$`);

/** Deeper than any real document, and too shallow to exhaust the stack. */
const MAX_DEPTH = 256;

/** Compiles all strings of a JSON value. Returns every problem, not only the first. */
export function compileTemplate(
  value: unknown,
  variables: readonly string[],
  { functions, encode = (text) => text }: TemplateOptions = {},
): { template: Template } | { problems: TemplateProblem[] } {
  const expressions: Expression[] = [];
  const secrets = new Set<string>();
  const problems: TemplateProblem[] = [];
  const render = compileValue(value, "", 0);
  return problems.length > 0 ? { problems } : { template: templateOf(expressions, secrets, render) };

  function compileValue(item: unknown, path: string, depth: number): Render {
    if (typeof item === "string") return compileText(item, path);
    if (typeof item !== "object" || item === null) return () => item;
    if (depth === MAX_DEPTH) {
      problems.push({ path, message: `This is nested deeper than ${MAX_DEPTH} levels.` });
      return () => item;
    }
    if (Array.isArray(item)) {
      const items = item.map((child, index) => compileValue(child, `${path}[${index}]`, depth + 1));
      return (values) => items.map((child) => child(values));
    }
    const members = Object.entries(item).map(
      ([key, child]) => [key, compileValue(child, memberPath(path, key), depth + 1)] as const,
    );
    // Not by assignment, which would set the prototype for a key named `__proto__`.
    return (values) => Object.fromEntries(members.map(([key, child]) => [key, child(values)]));
  }

  function compileText(text: string, path: string): Render {
    const parts: (string | Expression)[] = [];
    for (const part of split(text)) {
      if ("literal" in part) {
        parts.push(part.literal);
        continue;
      }
      try {
        if (part.source === undefined) throw new ExpressionError(unclosed(part.start));
        const secret = SECRET.exec(part.source)?.[1];
        if (secret !== undefined) secrets.add(secret);
        const expression =
          secret === undefined
            ? compileExpression(part.source, variables, functions)
            : secretNamed(secret, part.source);
        expressions.push(expression);
        parts.push(expression);
      } catch (error) {
        if (!(error instanceof ExpressionError)) throw error;
        problems.push({ path, message: withHint(error, part.source) });
      }
    }
    const [only] = parts;
    if (parts.length === 1 && typeof only === "object") return only.evaluate;
    return (values) => parts.map((part) => (typeof part === "string" ? part : encode(textOf(part, values)))).join("");
  }
}

/** Adds a hint for those who meant a secret, an environment variable or a shell variable. */
function withHint({ message, unknownName }: ExpressionError, source = ""): string {
  if (unknownName === "secrets") {
    return `${quoted(source)} computes with a secret, which can only be inserted: \`\${secrets.NAME}\`, with a name of letters, digits and \`_\`.`;
  }
  if (unknownName === "secret" || unknownName === "env") return `${message} A secret is written \`\${secrets.NAME}\`.`;
  return unknownName === source ? `${message} A plain \`\${${source}}\` is written \`$\${${source}}\`.` : message;
}

/** Whether the text contains an expression, closed or not. */
export function holdsTemplate(text: string): boolean {
  return split(text).some((part) => !("literal" in part));
}

function secretNamed(name: string, source: string): Expression {
  return {
    source,
    references: new Set(),
    calls: new Set(),
    membersOf: () => new Set(),
    pathsOf: () => [],
    evaluate({ secrets }) {
      const value: unknown = secrets instanceof Map ? secrets.get(name) : undefined;
      if (typeof value === "string") return value;
      throw new ExpressionError(`There is no secret \`${name}\`.`);
    },
  };
}

function templateOf(expressions: readonly Expression[], secrets: ReadonlySet<string>, render: Render): Template {
  const pathsOf = (variable: string) => expressions.flatMap((expression) => expression.pathsOf(variable));
  return {
    secrets,
    isConstant: expressions.length === 0,
    references: new Set(expressions.flatMap((expression) => [...expression.references])),
    calls: new Set(expressions.flatMap((expression) => [...expression.calls])),
    membersOf: (variable) => membersIn(pathsOf(variable)),
    pathsOf,
    render,
  };
}

/** Strings unchanged, other values as JSON. */
function textOf(expression: Expression, values: Values): string {
  const value = expression.evaluate(values);
  if (typeof value === "string") return value;
  if (value !== null) return JSON.stringify(value);
  throw new ExpressionError(
    `${quoted(expression.source)} is null, which cannot be inserted into text. Give a default, as in \`x == null ? "none" : x\`.`,
  );
}

function memberPath(path: string, key: string): string {
  if (!/^[\w-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

function unclosed(start: number): string {
  return `The \`\${\` at column ${start + 1} is not closed: a \`}\` is missing, or a quote is left open. Write \`$\${\` for a literal \`\${\`.`;
}

type Part = { literal: string } | { source: string | undefined; start: number };

/** Splits a text into literals and expressions. An unclosed expression has no source and is the last part. */
function split(text: string): Part[] {
  const parts: Part[] = [];
  let literal = "";
  let position = 0;
  for (let start = text.indexOf("${"); start !== -1; start = text.indexOf("${", position)) {
    if (text[start - 1] === "$") {
      literal += `${text.slice(position, start - 1)}\${`;
      position = start + 2;
      continue;
    }
    literal += text.slice(position, start);
    if (literal !== "") parts.push({ literal });
    literal = "";
    const end = endOfExpression(text, start + 2);
    if (end === undefined) return [...parts, { source: undefined, start }];
    parts.push({ source: text.slice(start + 2, end), start });
    position = end + 1;
  }
  literal += text.slice(position);
  return literal === "" ? parts : [...parts, { literal }];
}

/** The position of the `}` that closes the expression, skipping those of maps, strings and comments in it. */
function endOfExpression(text: string, start: number): number | undefined {
  let depth = 0;
  let position = start;
  while (position < text.length) {
    const character = text[position]!;
    if (character === '"' || character === "'") {
      position = endOfString(text, position, character);
      continue;
    }
    if (text.startsWith("//", position)) {
      const newline = text.indexOf("\n", position);
      if (newline === -1) return undefined;
      position = newline;
    }
    if (character === "{") depth += 1;
    if (character === "}" && depth === 0) return position;
    if (character === "}") depth -= 1;
    position += 1;
  }
  return undefined;
}

/** The position after a CEL string. A backslash escapes the next character in raw strings too. */
function endOfString(text: string, start: number, character: string): number {
  const quote = text.startsWith(character.repeat(3), start) ? character.repeat(3) : character;
  let position = start + quote.length;
  while (position < text.length && !text.startsWith(quote, position)) position += text[position] === "\\" ? 2 : 1;
  return position + quote.length;
}
