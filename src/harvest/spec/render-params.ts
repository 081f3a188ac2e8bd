/** The parameters of a request: their values or expressions, checked against their patterns before anything is sent. */
import { compileExpression, ExpressionError, quoted } from "../../kernel/expressions/cel.ts";
import type { ParamValues } from "../definition/definition.ts";
import type { RequestParam } from "../definition/policy.ts";
import { REQUEST_FUNCTIONS } from "./functions.ts";
import { compilePattern } from "./pattern.ts";
import { RenderError, textOf } from "./render-values.ts";
import { REQUEST_VARIABLES } from "./templates.ts";

type Values = Readonly<Record<string, unknown>>;
type Params = Readonly<Record<string, unknown>>;

/** Each declared parameter has a value, which may be null. `values` are those of the request without `params`. */
export function compileParams(declared: readonly RequestParam[]): (given: ParamValues, values: Values) => Params {
  const params = declared.map(compileParam);
  const isFixed = params.every(({ expression }) => expression === undefined);
  let last: { given: ParamValues; result: Params } | undefined;

  return (given, values) => {
    // The pages of a slice have the same parameters, and a pattern may take long.
    if (isFixed && last?.given === given) return last.result;
    const own = ownValues(params, given);
    const result = Object.fromEntries(
      params.map((param) => {
        const value = param.expression ? evaluated(param, { ...values, params: own }) : own[param.name];
        check(param, value ?? null);
        return [param.name, value ?? null];
      }),
    );
    last = { given, result };
    return result;
  };
}

/** A value that no request can be made with. */
export interface WrongValue {
  name: string;
  /** A sentence. */
  reason: string;
}

/**
 * The parameters whose values no request can be made with, as far as that is known before one is made: an expression of the
 * window, the page or the time is checked with each request. For declarations that compile. The sentences name the values, which
 * are those of a person's own trigger.
 */
export function wrongValues(declared: readonly RequestParam[], given: ParamValues): WrongValue[] {
  const params = declared.map(compileParam);
  const own = ownValues(params, given);
  return params.flatMap((param) => {
    const { name, field, expression } = param;
    if (expression && ![...expression.references].every((variable) => variable === "params")) return [];
    try {
      const value = expression ? evaluated(param, { params: own }) : own[name];
      if (value === null) return []; // One that is required and missing is named by the compiler.
      const reason = wrongValue(param, value, (text) => `The value ${quoted(text)}`);
      return reason === undefined ? [] : [{ name, reason }];
    } catch (error) {
      if (error instanceof RenderError && error.param === field) return [{ name, reason: error.reason }];
      throw error;
    }
  });
}

function compileParam(param: RequestParam) {
  return {
    ...param,
    field: `params.${param.name}`,
    matches: param.pattern === undefined ? () => true : compilePattern(param.pattern),
    expression:
      param.expr === undefined ? undefined : compileExpression(param.expr, REQUEST_VARIABLES, REQUEST_FUNCTIONS),
  };
}
type CompiledParam = ReturnType<typeof compileParam>;

function ownValues(params: readonly CompiledParam[], given: ParamValues): Params {
  return Object.fromEntries(
    params.map(({ name, default: fallback = null }) => [name, Object.hasOwn(given, name) ? given[name] : fallback]),
  );
}

function evaluated({ field, expression }: CompiledParam, all: Values): unknown {
  try {
    return expression!.evaluate(all);
  } catch (error) {
    if (error instanceof ExpressionError) throw new RenderError(field, error.message);
    throw error;
  }
}

function check(param: CompiledParam, value: unknown): void {
  const { field, required } = param;
  if (value === null) {
    if (required) throw new RenderError(field, "It is required and has no value.");
    return;
  }
  const reason = wrongValue(param, value, () => "Its value");
  if (reason !== undefined) throw new RenderError(field, reason);
}

/** `named` begins the sentence, with the value or without it. */
function wrongValue(
  { field, pattern, matches }: CompiledParam,
  value: unknown,
  named: (text: string) => string,
): string | undefined {
  for (const one of Array.isArray(value) ? value : [value]) {
    const text = textOf(one, field) ?? "";
    const isMatch = matches(text);
    if (isMatch === undefined) return `${named(text)} takes too long to compare with the pattern \`${pattern}\`.`;
    if (!isMatch) return `${named(text)} does not match the pattern \`${pattern}\`.`;
  }
  return undefined;
}
