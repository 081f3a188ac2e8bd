/**
 * The formulas of COMPUTED KPIs: CEL over the values of other KPIs by their ids (`KD1001 / KD1002 * 100`), once for every set
 * of equal dimensions. Where there is no value, a sentence says why.
 */
import { type ASTNode, Environment } from "@marcbachmann/cel-js";
import { compileExpression, type Expression, ExpressionError, quoted } from "../../kernel/expressions/cel.ts";
import { canonicalJson } from "../../kernel/json/canonical.ts";

export type Dimensions = Readonly<Record<string, string | number | boolean | null>>;

export interface KpiValue {
  dimensions: Dimensions;
  value: number;
}

export interface MissingValue {
  dimensions: Dimensions;
  /** Complete sentences. */
  reasons: string[];
}

export interface Formula {
  readonly kpiId: string;
  /** The ids of the KPIs that it is computed from; at least one. */
  readonly references: readonly string[];
  /** `values` has a number for every reference. Throws an ExpressionError where there is no result. */
  evaluate(values: ReadonlyMap<string, number>): number;
}

/** Ids that are not CEL identifiers are written `kpi["KD-1001"]`. */
const KPI = "kpi";
const NO_DIMENSIONS = canonicalJson({});

const CEL = new Environment();

/** The formula, or its problems as sentences. */
export function compileFormula(kpiId: string, expression: string): Formula | { problems: string[] } {
  let compiled: Compiled;
  try {
    compiled = compile(expression);
  } catch (error) {
    if (error instanceof ExpressionError) return { problems: [error.message] };
    throw error;
  }
  const problems = [...problemsOf(kpiId, compiled)];
  if (problems.length > 0) return { problems };
  return { kpiId, references: compiled.references, evaluate: (values) => numberFrom(compiled, values) };
}

/**
 * The formula's value for every set of dimensions that a part has a value for. A part that has no dimensions at all counts
 * for every set; if no part has any, there is one set, without.
 */
export function evaluateFormula(
  formula: Formula,
  parts: ReadonlyMap<string, readonly KpiValue[]>,
): { rows: KpiValue[]; missing: MissingValue[] } {
  const columns = formula.references.map((kpiId) => columnOf(kpiId, parts.get(kpiId) ?? []));
  const sets = new Map<string, Dimensions>();
  for (const { hasDimensions, values } of columns) {
    if (hasDimensions) for (const [key, { dimensions }] of values) sets.set(key, dimensions);
  }
  if (sets.size === 0) sets.set(NO_DIMENSIONS, {});

  const rows: KpiValue[] = [];
  const missing: MissingValue[] = [];
  for (const [key, dimensions] of sets) {
    const outcome = evaluateSet(formula, columns, key);
    if ("value" in outcome) rows.push({ dimensions, ...outcome });
    else missing.push({ dimensions, ...outcome });
  }
  return { rows, missing };
}

/** The values of one part. */
interface Column {
  kpiId: string;
  hasDimensions: boolean;
  /** By the canonical text of their dimensions. */
  values: ReadonlyMap<string, KpiValue>;
}

function columnOf(kpiId: string, rows: readonly KpiValue[]): Column {
  const values = new Map(rows.map((row) => [canonicalJson(row.dimensions), row]));
  return { kpiId, values, hasDimensions: values.size > (values.has(NO_DIMENSIONS) ? 1 : 0) };
}

function evaluateSet(
  formula: Formula,
  columns: readonly Column[],
  key: string,
): { value: number } | { reasons: string[] } {
  const values = new Map<string, number>();
  const reasons: string[] = [];
  for (const { kpiId, hasDimensions, values: ofPart } of columns) {
    const value = ofPart.get(hasDimensions ? key : NO_DIMENSIONS)?.value;
    if (value === undefined) reasons.push(`${kpiId} has no value${hasDimensions ? " for these dimensions" : ""}.`);
    else if (!Number.isFinite(value)) reasons.push(`${kpiId} is ${value}, which nothing can be computed from.`);
    else values.set(kpiId, value);
  }
  if (reasons.length > 0) return { reasons };
  try {
    return { value: formula.evaluate(values) };
  } catch (error) {
    if (error instanceof ExpressionError) return { reasons: [error.message] };
    throw error;
  }
}

interface Compiled {
  expression: Expression;
  /** As its author wrote it, for messages. */
  source: string;
  references: string[];
  run(values: ReadonlyMap<string, number>): unknown;
}

function compile(source: string): Compiled {
  const expression = compileOverDoubles(source);
  const names = namesIn(expression);
  const members = [...(expression.membersOf(KPI) ?? [])];
  return {
    expression,
    source: quoted(source),
    references: [...new Set([...names, ...members])],
    run(values) {
      const pick = (ids: string[]) => Object.fromEntries(ids.map((id) => [id, values.get(id)]));
      return expression.evaluate({ ...pick(names), [KPI]: pick(members) });
    },
  };
}

function namesIn(expression: Expression): string[] {
  return [...expression.references].filter((name) => name !== KPI);
}

function* problemsOf(kpiId: string, compiled: Compiled): Generator<string> {
  const { expression, source, references } = compiled;
  if (expression.membersOf(KPI) === undefined) {
    yield `${source} must name each of its KPIs literally, like \`kpi["KD-1001"]\`.`;
    return;
  }
  if (references.length === 0) yield `${source} names no KPI to compute ${kpiId} from.`;
  if (references.includes(kpiId)) yield `${source} computes ${kpiId} from itself.`;
  for (const name of namesIn(expression)) {
    for (const member of expression.membersOf(name) ?? []) {
      const whole = `${name}.${member}`;
      yield `${source} takes a part of ${name}, which is a number; if ${whole} is one id, write \`kpi["${whole}"]\`.`;
    }
  }
  if (givesNoNumber(compiled)) yield `${source} does not give a number.`;
}

/** CEL does not know the type in advance, so this evaluates with 1 for every part. If that fails, other values may still work. */
function givesNoNumber({ references, run }: Compiled): boolean {
  try {
    return typeof run(new Map(references.map((id) => [id, 1]))) !== "number";
  } catch {
    return false;
  }
}

function numberFrom({ expression, source, run }: Compiled, values: ReadonlyMap<string, number>): number {
  let result: unknown;
  try {
    result = run(values);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw new ExpressionError(error.message.replace(quoted(expression.source), () => source));
  }
  if (typeof result === "number") return result;
  throw new ExpressionError(`${source} does not give a number.`);
}

/**
 * CEL divides integers as integers (`1 / 2 * KD1001` would be 0) and requires both results of `?:` to have one type.
 * So every number in the text is rewritten as a double of dynamic type, like that of a KPI.
 */
function compileOverDoubles(source: string): Expression {
  let nodes: ASTNode[];
  try {
    nodes = nodesOf(CEL.parse(source).ast);
  } catch {
    return compileExpression(source, [KPI]); // Fails too, with a readable sentence.
  }
  const ids = nodes.flatMap((node) => (node.op === "id" && !CEL.hasVariable(node.args) ? [node.args] : []));
  const names = [...new Set([KPI, ...ids])];
  try {
    return compileExpression(overDoubles(source, nodes), names);
  } catch {
    compileExpression(source, names); // Usually fails too, but with the text and columns that the author wrote.
    throw new ExpressionError(`${quoted(source)} has too many numbers in it: split it into several KPIs.`);
  }
}

function overDoubles(source: string, nodes: readonly ASTNode[]): string {
  let text = "";
  let copiedTo = 0;
  for (const node of nodes.toSorted((a, b) => a.start - b.start)) {
    const double = node.op === "value" ? doubleLiteral(node.args) : undefined;
    if (double === undefined) continue;
    text += `${source.slice(copiedTo, node.start)}dyn(${double})`;
    copiedTo = node.end;
  }
  return text + source.slice(copiedTo);
}

function doubleLiteral(value: unknown): string | undefined {
  const number: unknown = value?.valueOf(); // CEL represents an unsigned number as an object.
  if (typeof number === "bigint") return `${number}.0`;
  return typeof number === "number" ? number.toExponential() : undefined;
}

function nodesOf(root: ASTNode): ASTNode[] {
  const nodes = [root];
  for (const node of nodes) {
    if (node.op !== "value") nodes.push(...[node.args].flat(3).filter((child) => typeof child === "object"));
  }
  return nodes;
}
