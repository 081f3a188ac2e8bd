/**
 * CEL expressions over JSON values: conditions of chains, `${...}` in templates, formulas. This file adapts CEL to JSON, where
 * every number is a double, sets limits, and turns errors into sentences.
 */

import { createContext, Script } from "node:vm";
import { type ASTNode, TypeError as CheckError, Environment, EvaluationError, ParseError } from "@marcbachmann/cel-js";
import { isPlainObject } from "../json/is-plain-object.ts";
import { didYouMean } from "../nearest.ts";

/** Names of members, from the outermost. */
export type Path = readonly string[];

export interface Expression {
  readonly source: string;
  /** The variables that it uses. */
  readonly references: ReadonlySet<string>;
  /** The functions, methods and macros that it calls, by name. Operators are not among them. */
  readonly calls: ReadonlySet<string>;
  /**
   * The members of `variable` that it names (`nodes.a`, `nodes["a-b"]`), or undefined if they are known only at run time
   * (`nodes[params.which]`, `size(nodes)`).
   */
  membersOf(variable: string): ReadonlySet<string> | undefined;
  /**
   * The paths below `variable` that it reads, each with all that is below it: `["a", "artifact"]` for `nodes.a.artifact[0]`. A
   * path ends where its members are known only at run time.
   */
  pathsOf(variable: string): readonly Path[];
  /** A new JSON value that shares nothing with `values`. Throws an ExpressionError. */
  evaluate(values: Readonly<Record<string, unknown>>): unknown;
}

/** An expression that cannot be compiled or evaluated. The message contains no value, since a value may be a secret. */
export class ExpressionError extends Error {
  /** The unknown variable, if that is the error. */
  readonly unknownName: string | undefined;

  constructor(message: string, unknownName?: string) {
    super(message);
    this.name = "ExpressionError";
    this.unknownName = unknownName;
  }
}

const SOURCE_LENGTH_MAX = 4_096;
const QUOTE_LENGTH_MAX = 80;
/** The number of values and characters. */
const RESULT_SIZE_MAX = 16_000_000;
/** In this time, a list that doubles (`l.map(a, a + a).map(a, a + a)...`) reaches 100 MB; a bad pattern never ends. */
const EVALUATION_MS_MAX = 250;

/** Macros that bind a name, as in `l.map(name, ...)`. Only they and `matches` can take long. */
const MACROS: ReadonlySet<string> = new Set(["all", "exists", "exists_one", "filter", "map", "bind"]);

/** The library drops these keys from maps, and would look them up in prototypes of timestamps and other objects. */
const FORBIDDEN_NAMES: ReadonlySet<unknown> = new Set(["__proto__", "constructor", "prototype"]);

/** Replaces messages of the library that contain a value. */
const REASONS: Readonly<Record<string, string>> = {
  numeric_overflow: "a whole number is beyond 64 bits",
  bool_conversion_error: "bool() takes only texts such as `true` and `false`",
  invalid_regular_expression: "the pattern of matches() is not a regular expression",
  invalid_duration: 'duration() takes texts such as "90s" and "1h30m"',
};

/** For these errors, the message names the missing part. */
const MISSING: ReadonlySet<string> = new Set(["no_such_key", "index_out_of_bounds", "unknown_variable"]);

const JSON_ENVIRONMENT = jsonEnvironment();
const CEL_FUNCTIONS: FunctionSet = { environment: JSON_ENVIRONMENT, shown: functionsOf(JSON_ENVIRONMENT) };

/** Functions that expressions of one kind have beyond those of CEL. */
export interface FunctionSet {
  readonly environment: Environment;
  /** The names that a message lists for one that does not exist. */
  readonly shown: readonly string[];
}

/**
 * By CEL signature, such as `coalesce(dyn, dyn): dyn`. A handler gets JSON values; of CEL's own types, whole numbers are bigints
 * and timestamps Dates. It throws an ExpressionError for a value that it cannot take.
 */
export function functionSet(
  functions: Readonly<Record<string, (...values: readonly unknown[]) => unknown>>,
  shown?: readonly string[],
): FunctionSet {
  const environment = JSON_ENVIRONMENT.clone();
  for (const [signature, handler] of Object.entries(functions)) environment.registerFunction(signature, handler);
  return { environment, shown: shown ?? functionsOf(environment) };
}

/** The names of all functions, methods and macros of the set. */
export function functionNames({ environment }: FunctionSet): ReadonlySet<string> {
  return new Set(functionsOf(environment));
}

function functionsOf(environment: Environment): string[] {
  return [...new Set(environment.getDefinitions().functions.map(({ name }) => name))];
}

/** Throws an ExpressionError that says what is wrong, and where. */
export function compileExpression(
  source: string,
  variables: readonly string[],
  functions: FunctionSet = CEL_FUNCTIONS,
): Expression {
  if (source.length > SOURCE_LENGTH_MAX) {
    throw new ExpressionError(
      `An expression has at most ${SOURCE_LENGTH_MAX} characters; ${quoted(source)} has ${source.length}.`,
    );
  }
  if (source.trim() === "") throw new ExpressionError("The expression is empty.");

  const environment = functions.environment.clone();
  for (const name of variables) environment.registerVariable(name, "dyn");
  const { program, usage } = parse(source, variables, { ...functions, environment });
  const run = usage.needsTimeLimit ? (values: Record<string, unknown>) => withinTime(() => program(values)) : program;

  return {
    source,
    references: usage.references,
    calls: usage.calls,
    membersOf: (variable) => membersIn(usage.paths.get(variable) ?? []),
    pathsOf: (variable) => usage.paths.get(variable) ?? [],
    evaluate(values) {
      try {
        return toJson(run(values));
      } catch (error) {
        throw new ExpressionError(`${quoted(source)} failed: ${reasonOf(error)}.`);
      }
    },
  };
}

/** CEL does not mix int and double, and divides doubles by zero. Formulas over JSON need the first and must refuse the second. */
function jsonEnvironment(): Environment {
  const environment = new Environment({ homogeneousAggregateLiterals: false });
  const arithmetic: Record<string, (left: number, right: number) => number> = {
    "+": (left, right) => left + right,
    "-": (left, right) => left - right,
    "*": (left, right) => left * right,
    "/": (left, right) => left / notZero(right),
    "%": (left, right) => left % notZero(right),
  };
  for (const [operator, compute] of Object.entries(arithmetic)) {
    const handler = (left: bigint | number, right: bigint | number) => compute(Number(left), Number(right));
    environment.registerOperator(`double ${operator} int: double`, handler);
    environment.registerOperator(`int ${operator} double: double`, handler);
  }
  environment.registerOperator("double % double: double", arithmetic["%"]!);
  // `dyn<double>` is the type of numbers from variables; for them, this overrides the library's `double / double`. Results of
  // double() still use the library's, and `toJson` refuses an Infinity.
  environment.registerOperator("dyn<double> / double: double", arithmetic["/"]!);
  environment.registerOperator(
    "int == double",
    (left: bigint, right: number) => Number.isInteger(right) && BigInt(right) === left,
  );
  return environment;
}

function notZero(divisor: number): number {
  if (divisor === 0) throw new EvaluationError("division by zero");
  return divisor;
}

function parse(source: string, variables: readonly string[], functions: FunctionSet) {
  try {
    const program = functions.environment.parse(source);
    const usage = usageOf(program.ast, source, variables, functions);
    const { error } = program.check();
    if (error !== undefined) throw error;
    return { program, usage };
  } catch (error) {
    if (error instanceof ExpressionError) throw error;
    throw new ExpressionError(`${quoted(source)} is not valid${placeOf(error, source)}: ${reasonOf(error)}.`);
  }
}

interface Usage {
  readonly references: Set<string>;
  readonly calls: Set<string>;
  /** By variable. */
  readonly paths: Map<string, Path[]>;
  needsTimeLimit: boolean;
}

/** The first members of the paths; undefined if one of them is the variable itself. */
export function membersIn(paths: readonly Path[]): ReadonlySet<string> | undefined {
  const members = paths.map(([first]) => first);
  return members.every((member) => member !== undefined) ? new Set(members) : undefined;
}

function usageOf(
  root: ASTNode,
  source: string,
  variables: readonly string[],
  { environment, shown }: FunctionSet,
): Usage {
  const usage: Usage = { references: new Set(), calls: new Set(), paths: new Map(), needsTimeLimit: false };
  visit(root, new Set());
  return usage;

  /**
   * `bound` has the names that macros around `node` bind; they shadow variables. `below` is the path that is read of its
   * value.
   */
  function visit(node: ASTNode, bound: ReadonlySet<string>, below: Path = []): void {
    if (node.op === "id") {
      use(node.args, node, below, bound);
    } else if (node.op === "." || node.op === "[]") {
      const [object, key] = node.args;
      const name = typeof key === "string" ? key : literalText(key);
      allow(name, typeof key === "string" ? node : key);
      visit(object, bound, name === undefined ? [] : [name, ...below]);
      if (typeof key !== "string") visit(key, bound);
    } else if (node.op === "rcall") {
      visitMethod(node, ...node.args, bound);
    } else {
      if (node.op === "call") call(node.args[0], node);
      if (node.op === "map") for (const [key] of node.args) allow(literalText(key), key);
      for (const child of childrenOf(node)) visit(child, bound);
    }
  }

  function visitMethod(
    node: ASTNode,
    method: string,
    receiver: ASTNode,
    args: ASTNode[],
    bound: ReadonlySet<string>,
  ): void {
    visit(receiver, bound);
    call(method, node);
    const [first, ...rest] = args;
    const isMacro = MACROS.has(method) && first?.op === "id" && rest.length > 0;
    if (isMacro || method === "matches") usage.needsTimeLimit = true;
    if (!isMacro) {
      for (const argument of args) visit(argument, bound);
      return;
    }
    const inner = new Set([...bound, first.args]);
    // In `cel.bind(name, value, result)` the name is not bound in the value.
    for (const [index, argument] of rest.entries()) visit(argument, method === "bind" && index === 0 ? bound : inner);
  }

  function call(name: string, node: ASTNode): void {
    usage.calls.add(name);
    if (shown.includes(name) || functionsOf(environment).includes(name)) return;
    throw new ExpressionError(
      `${quoted(source)} calls \`${name}\`${placeOf({ node }, source)}, which is not a function; ` +
        `known are: ${shown.map((one) => `\`${one}\``).join(", ")}.${didYouMean(name, shown)}`,
    );
  }

  function use(name: string, node: ASTNode, path: Path, bound: ReadonlySet<string>): void {
    if (bound.has(name)) return;
    if (!variables.includes(name)) {
      if (environment.hasVariable(name)) return; // A name of CEL, such as `int` or `cel`.
      const known = variables.map((variable) => `\`${variable}\``).join(", ") || "none";
      throw new ExpressionError(
        `${quoted(source)} uses \`${name}\`${placeOf({ node }, source)}, which is not known here; ` +
          `known are: ${known}.${didYouMean(name, variables)}`,
        name,
      );
    }
    usage.references.add(name);
    usage.paths.set(name, [...(usage.paths.get(name) ?? []), path]);
  }

  function allow(name: string | undefined, node: ASTNode): void {
    if (!FORBIDDEN_NAMES.has(name)) return;
    throw new ExpressionError(
      `${quoted(source)} uses \`${name}\`${placeOf({ node }, source)}, which is not allowed as a name.`,
    );
  }
}

function literalText(node: ASTNode): string | undefined {
  return node.op === "value" && typeof node.args === "string" ? node.args : undefined;
}

function childrenOf(node: ASTNode): ASTNode[] {
  if (node.op === "value") return [];
  return [node.args].flat(3).filter((child) => typeof child === "object");
}

/** The library has no time limit. This one costs 0.1 ms, so only expressions that can take long use it. */
function withinTime(run: () => unknown): unknown {
  timed.run = run;
  try {
    return RUN_TIMED.runInContext(timed, { timeout: EVALUATION_MS_MAX });
  } finally {
    timed.run = undefined;
  }
}

const timed: { run: (() => unknown) | undefined } = { run: undefined };
createContext(timed);
const RUN_TIMED = new Script("run()");

/** Converts results of CEL to JSON: its whole numbers are bigints, its timestamps Dates. */
function toJson(result: unknown): unknown {
  let room = RESULT_SIZE_MAX;
  return convert(result);

  function convert(value: unknown): unknown {
    room -= typeof value === "string" ? value.length : 1;
    if (room < 0) throw new ExpressionError(`its result is larger than ${RESULT_SIZE_MAX} characters`);
    if (value === null || typeof value === "boolean" || typeof value === "string") return value;
    if (typeof value === "number") return finite(value);
    if (typeof value === "bigint") return safeInteger(value);
    if (Array.isArray(value)) return value.map(convert);
    if (value instanceof Date) return value.toISOString();
    if (isPlainObject(value)) {
      // Not by assignment, which would set the prototype for a key named `__proto__`.
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, convert(item)]));
    }
    const unsigned: unknown = value?.valueOf();
    if (typeof unsigned === "bigint") return safeInteger(unsigned);
    throw new ExpressionError("its result contains something that is not JSON, such as a duration, bytes or a type");
  }
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new ExpressionError("its result is not a finite number (divided by zero?)");
}

function safeInteger(value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new ExpressionError("its result is a whole number beyond 2^53, which JSON cannot hold exactly");
}

/** The reason, to follow a colon. */
function reasonOf(error: unknown): string {
  if (error instanceof ExpressionError) return error.message;
  if (error instanceof EvaluationError || error instanceof CheckError || error instanceof ParseError) {
    const { code, node, summary } = error;
    if (MISSING.has(code) && node !== undefined) return `there is no ${quoted(sourceOf(node))}`;
    const reason = REASONS[code] ?? phrase(summary);
    return code === "incompatible_ternary_branches" ? `${reason}; dyn(...) around one of them allows it` : reason;
  }
  if ((error as { code?: unknown }).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") {
    return `it took longer than ${EVALUATION_MS_MAX} ms`;
  }
  if (error instanceof RangeError && /stack|length/.test(error.message)) {
    return "it is nested too deeply, or grows too large";
  }
  return "a function was given a value that it cannot take";
}

/** The library's message as a part of a sentence. Removes `dyn<...>`, which means nothing to users. */
function phrase(summary: string): string {
  const words = summary.replaceAll(/\bdyn<((?:[^<>]|<[^<>]*>)*)>/g, "$1").replace(/\.$/, "");
  return words.charAt(0).toLowerCase() + words.slice(1);
}

/** " at column 7", or nothing. */
function placeOf(error: unknown, source: string): string {
  const position = (error as { node?: { pos: number } }).node?.pos;
  if (position === undefined) return "";
  const lines = source.slice(0, position).split("\n");
  const column = `column ${lines.at(-1)!.length + 1}`;
  return source.includes("\n") ? ` at line ${lines.length}, ${column}` : ` at ${column}`;
}

function sourceOf({ input, start, end }: { input?: string; start: number; end: number }): string {
  return (input ?? "").slice(start, end);
}

/** The source in backticks, on one line, shortened to fit in a sentence. */
export function quoted(source: string): string {
  const line = source.trim().replaceAll(/\s+/g, " ");
  return `\`${line.length > QUOTE_LENGTH_MAX ? `${line.slice(0, QUOTE_LENGTH_MAX - 3)}...` : line}\``;
}
