/**
 * What an answer means. The first rule that applies decides; without one, 2xx is OK. Rules are CEL, but an answer that is fine
 * must pass them all, and CEL takes 15 to 60 us a rule. So the conditions at the start of a rule that tell answers apart
 * cheaply (`status == 429 && ...`, `has(body.error) && ...`) are checked directly, and CEL only runs if they hold.
 */
import { compileExpression, type Expression, ExpressionError } from "../../kernel/expressions/cel.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import type { ACTIONS, ClassifierRule } from "../definition/policy.ts";

export interface Answer {
  status: number;
  /** By name in lower case. */
  headers: Readonly<Record<string, string>>;
  /** The document, or the envelope of XML; null if the body could not be parsed. */
  body: unknown;
  /** The first characters of the body. */
  text: string;
  /** 1 for the first attempt. */
  attempt: number;
}

export interface Verdict {
  action: (typeof ACTIONS)[number] | "OK";
  reason: string;
  level?: ClassifierRule["level"];
  cooldownSec?: number;
}

export const CLASSIFIER_VARIABLES = ["status", "headers", "body", "text", "attempt"] as const;
/** How much of the body is `text`. */
export const TEXT_LENGTH_MAX = 4_096;

const OK: Verdict = { action: "OK", reason: "" };

/** Throws an ExpressionError if a rule is not CEL. */
export function compileClassifier(rules: readonly ClassifierRule[]): (answer: Answer) => Verdict {
  const compiled = rules.map((rule) => ({ applies: compileCondition(rule.when), verdict: verdictOf(rule) }));
  return (answer) => {
    for (const { applies, verdict } of compiled) if (applies(answer)) return verdict;
    if (answer.status >= 200 && answer.status < 300) return OK;
    return { action: "FAIL", reason: `unexpected status ${answer.status}`, level: "L2" };
  };
}

function verdictOf({ action, reason, level, cooldownSec }: ClassifierRule): Verdict {
  return { action, reason, ...(level && { level }), ...(cooldownSec !== undefined && { cooldownSec }) };
}

type Condition = (answer: Answer) => boolean;

function compileCondition(when: string): Condition {
  const whole = compileExpression(when, CLASSIFIER_VARIABLES);
  const { guards, rest } = guardsOf(when.trim());
  if (rest === "") return (answer) => guards.every((guard) => guard(answer));
  const evaluated = guards.length === 0 ? whole : compileExpression(rest, CLASSIFIER_VARIABLES);
  return (answer) => guards.every((guard) => guard(answer)) && holds(evaluated, answer);
}

/** A condition about a part that the answer does not have fails, and does not apply. */
function holds(expression: Expression, answer: Answer): boolean {
  try {
    return expression.evaluate({ ...answer }) === true;
  } catch (error) {
    if (error instanceof ExpressionError) return false;
    throw error;
  }
}

/** Forms of a condition that need no CEL. What follows is `&&` or the end. */
const GUARDS: readonly [RegExp, (...groups: string[]) => Condition][] = [
  [/^status (==|>=|<=|<|>) (\d{3})(?= && |$)/, (operator, number) => compare(operator, Number(number))],
  [
    /^status in \[(\d{3}(?:, \d{3})*)\](?= && |$)/,
    (numbers) => {
      const among = new Set(numbers.split(", ").map(Number));
      return ({ status }) => among.has(status);
    },
  ],
  [
    /^body == null(?= && |$)/,
    () =>
      ({ body }) =>
        body === null,
  ],
  [
    /^body != null(?= && |$)/,
    () =>
      ({ body }) =>
        body !== null,
  ],
  [
    /^"([\w-]+)" in headers(?= && |$)/,
    (name) =>
      ({ headers }) =>
        Object.hasOwn(headers, name),
  ],
  [/^has\(body((?:\.\w+)+)\)(?= && |$)/, (path) => hasMember(path.slice(1).split("."))],
  [
    /^"([\w-]+)" in body((?:\["[\w-]+"\]|\.\w+)*)(?= && |$)/,
    (last, path) => hasMember([...path.matchAll(/[\w-]+/g)].map(([name]) => name).concat(last)),
  ],
];

function guardsOf(when: string): { guards: Condition[]; rest: string } {
  const guards: Condition[] = [];
  let rest = when;
  // `a && b || c` is not a condition that begins with `a`.
  while (!hasAlternative(rest)) {
    const found = GUARDS.map(([form, make]) => ({ match: form.exec(rest), make })).find(({ match }) => match);
    if (!found?.match) break;
    const [text, ...groups] = found.match;
    guards.push(found.make(...groups));
    rest = rest.slice(text.length).replace(/^ && /, "");
    if (rest === "") break;
  }
  return { guards, rest };
}

/** `||` or `?` outside of parentheses and quotes. */
function hasAlternative(when: string): boolean {
  const flat = when.replaceAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, "");
  let depth = 0;
  for (const character of flat) {
    if (character === "(") depth += 1;
    else if (character === ")") depth -= 1;
    else if (depth === 0 && (character === "|" || character === "?")) return true;
  }
  return false;
}

function compare(operator: string, number: number): Condition {
  switch (operator) {
    case "==":
      return ({ status }) => status === number;
    case ">=":
      return ({ status }) => status >= number;
    case "<=":
      return ({ status }) => status <= number;
    case "<":
      return ({ status }) => status < number;
    default:
      return ({ status }) => status > number;
  }
}

function hasMember(names: readonly string[]): Condition {
  return ({ body }) => {
    let value = body;
    for (const name of names) {
      if (!isRecord(value) || !Object.hasOwn(value, name)) return false;
      value = value[name];
    }
    return true;
  };
}
