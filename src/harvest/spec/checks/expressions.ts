/** Expressions and templates: they compile, name what exists and call what is allowed. */
import { compileExpression, ExpressionError, quoted } from "../../../kernel/expressions/cel.ts";
import { didYouMean } from "../../../kernel/nearest.ts";
import { CLASSIFIER_VARIABLES } from "../../decode/classifier.ts";
import { KNOWN_FUNCTIONS, REQUEST_FUNCTIONS } from "../functions.ts";
import { compilePattern, wrongPattern } from "../pattern.ts";
import { compileRequestTemplate, REQUEST_MEMBERS, REQUEST_VARIABLES, templatesOf } from "../templates.ts";
import type { CheckInput, Finding } from "./check.ts";

/** What an expression of a request may use at this endpoint. */
function variablesOf({
  policy,
  isDetail,
  answersIds,
}: Pick<CheckInput, "policy" | "isDetail" | "answersIds">): string[] {
  return REQUEST_VARIABLES.filter((name) => {
    if (name === "ids") return answersIds;
    if (name === "parts") return !isDetail && policy.slicing !== undefined;
    return name === "window" ? !isDetail && policy.window !== undefined : true;
  });
}

/** The templates that compile, and what is wrong with the others. */
export function compileTemplates(input: Omit<CheckInput, "templates" | "allCompile">): {
  templates: CheckInput["templates"][number][];
  findings: Finding[];
} {
  const templates: CheckInput["templates"][number][] = [];
  const findings: Finding[] = [];
  const { http, pagination, window } = input.policy;
  for (const one of templatesOf({ http: { ...http, path: input.endpoint.path }, pagination, window: window ?? {} })) {
    const place = one.part === "path" ? { field: "path", table: "reg_prov_endpoint_def" } : { field: one.field };
    const compiled = compileRequestTemplate(one, variablesOf(input));
    if ("template" in compiled) templates.push({ ...one, template: compiled.template });
    else findings.push(...compiled.problems.map(({ message }) => ({ ...place, reason: message })));
  }
  return { templates, findings };
}

function namesOfParts({ policy: { slicing } }: CheckInput): string[] {
  return [...(slicing?.ids ? [slicing.ids] : []), ...(slicing?.ladder ?? [])].map(({ name }) => name);
}

/** A credential is sent by `auth`, where its value is known and can be redacted. */
export function* secretsStayOut({ templates }: CheckInput): Iterable<Finding> {
  for (const { field, template } of templates) {
    if (template.secrets.size === 0) continue;
    yield { field, reason: "It inserts a secret. Declare a credential, and send it with `auth`." };
  }
}

export function* membersExist(input: CheckInput): Iterable<Finding> {
  const known = {
    ...REQUEST_MEMBERS,
    params: input.policy.params.map(({ name }) => name),
    parts: namesOfParts(input),
  };
  for (const { field, template } of input.templates) {
    yield* unknownMembers(field, known, (variable) => template.membersOf(variable));
  }
}

export function* paramsCompile(input: CheckInput): Iterable<Finding> {
  const { params } = input.policy;
  const names = params.map(({ name }) => name);
  const allowed = new Set(input.policy.expr.allowedFunctions);
  for (const [index, { name, expr, pattern, required, default: fallback }] of params.entries()) {
    if (names.indexOf(name) !== index) {
      yield { field: `params[${index}].name`, reason: `The parameter \`${name}\` is declared twice.` };
    }
    if (expr !== undefined) {
      const field = `params[${index}].expr`;
      try {
        const expression = compileExpression(expr, variablesOf(input), REQUEST_FUNCTIONS);
        yield* forbiddenCalls(field, expression.calls, allowed);
        yield* unknownMembers(field, { ...REQUEST_MEMBERS, params: names, parts: namesOfParts(input) }, (one) =>
          expression.membersOf(one),
        );
      } catch (error) {
        yield { field, reason: sentenceOf(error) };
      }
    }
    if (pattern !== undefined)
      yield* badPattern(`params[${index}].pattern`, pattern, expr === undefined ? fallback : undefined);
    if (required && fallback !== undefined) {
      yield { field: `params[${index}].required`, reason: `\`${name}\` has a default, so it is never missing.` };
    }
  }
}

/** A parameter in the path stands in its template; it has no other place. */
export function* pathParamsAreInPath({ policy: { params }, templates }: CheckInput): Iterable<Finding> {
  const path = templates.find(({ part }) => part === "path");
  if (!path) return;
  const read = path.template.membersOf("params");
  for (const [index, { name, location }] of params.entries()) {
    if (location !== "PATH" || read === undefined || read.has(name)) continue;
    yield { field: `params[${index}].location`, reason: `The path does not contain \`\${params.${name}}\`.` };
  }
}

export function* classifierCompiles({ policy }: CheckInput): Iterable<Finding> {
  const allowed = new Set(policy.expr.allowedFunctions);
  for (const [index, { when }] of policy.classifier.entries()) {
    const field = `classifier[${index}].when`;
    try {
      yield* forbiddenCalls(field, compileExpression(when, CLASSIFIER_VARIABLES).calls, allowed);
    } catch (error) {
      yield { field, reason: sentenceOf(error) };
    }
  }
}

/** 3.3.3: expressions call only functions that the source allows. */
export function* callsAreAllowed({ policy, templates }: CheckInput): Iterable<Finding> {
  const allowed = new Set(policy.expr.allowedFunctions);
  for (const { field, template } of templates) yield* forbiddenCalls(field, template.calls, allowed);
}

export function* allowedFunctionsExist({ policy }: CheckInput): Iterable<Finding> {
  for (const name of policy.expr.allowedFunctions ?? []) {
    if (KNOWN_FUNCTIONS.has(name)) continue;
    yield {
      field: "expr.allowedFunctions",
      reason: `There is no function \`${name}\`.${didYouMean(name, KNOWN_FUNCTIONS)}`,
    };
  }
}

export function* forbiddenCalls(
  field: string,
  calls: ReadonlySet<string>,
  allowed: ReadonlySet<string>,
): Iterable<Finding> {
  for (const name of calls) {
    if (allowed.has(name)) continue;
    const names = [...allowed].map((one) => `\`${one}\``).join(", ") || "none";
    const reason = `It calls \`${name}\`, which is not in \`expr.allowedFunctions\`; allowed are: ${names}.`;
    yield { field, reason: reason + didYouMean(name, allowed) };
  }
}

export function* unknownMembers(
  field: string,
  known: Readonly<Record<string, readonly string[]>>,
  membersOf: (variable: string) => ReadonlySet<string> | undefined,
): Iterable<Finding> {
  for (const [variable, members] of Object.entries(known)) {
    for (const member of membersOf(variable) ?? []) {
      if (members.includes(member)) continue;
      const names = members.map((one) => `\`${one}\``).join(", ") || "none";
      yield {
        field,
        reason: `There is no \`${variable}.${member}\`; known are: ${names}.${didYouMean(member, members)}`,
      };
    }
  }
}

function* badPattern(
  field: string,
  pattern: string,
  fallback: string | number | boolean | undefined,
): Iterable<Finding> {
  const wrong = wrongPattern(pattern);
  if (wrong !== undefined) {
    yield { field, reason: wrong };
  } else if (fallback !== undefined && compilePattern(pattern)(String(fallback)) !== true) {
    const reason = `The value ${quoted(String(fallback))} does not match the pattern \`${pattern}\` of its own parameter.`;
    yield { field: field.replace("pattern", "default"), reason };
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof ExpressionError) return error.message;
  throw error;
}
