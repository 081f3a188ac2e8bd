/** The text of a chain, in the form that `millrace chain apply` takes, and the same as the API takes it. */
import type { ApiError } from "../../api/client.ts";
import { writeApart } from "../../parts/editor/apart.ts";
import { type Diagnostic, yamlText } from "../../parts/editor/text.ts";
import type { Translated } from "../../words/table.ts";
import type { ChainNode } from "../api.ts";
import type { definitionWords } from "./words.ts";

export interface ChainFields {
  name: string;
  description: string | null;
  /** Limits are no part of a version. */
  maxActiveRuns?: number | null | undefined;
  runTimeoutMs?: number | null | undefined;
  dag: { nodes: readonly ChainNode[] };
}

export interface ChainBody {
  name: unknown;
  description: unknown;
  maxActiveRuns: unknown;
  runTimeoutMs: unknown;
  dagJson: object;
  enabled?: unknown;
}

type Value = Readonly<Record<string, unknown>>;
type Words = Translated<(typeof definitionWords)["en"]>;

/** The order in which people write them; the database has its own. */
const NODE_FIELDS = [
  "id",
  "type",
  "dependsOn",
  "runWhen",
  "if",
  "waitsFor",
  "pool",
  "retry",
  "timeoutMs",
  "cfg",
] as const;
const CHAIN_FIELDS = ["name", "description", "maxActiveRuns", "runTimeoutMs", "enabled", "dag", "nodes"];

/** More take long enough to be noticed: 10,000 take a fifth of a second. */
const AT_ONCE_NODES_MAX = 1_000;

export function isLarge({ dag }: ChainFields): boolean {
  return dag.nodes.length > AT_ONCE_NODES_MAX;
}

export function chainText(chain: ChainFields): string {
  return yamlText(contentOf(chain));
}

/** In a worker, for a large chain. */
export async function chainTextApart(chain: ChainFields): Promise<string> {
  return isLarge(chain) ? writeApart(contentOf(chain)) : chainText(chain);
}

function contentOf({ name, description, maxActiveRuns, runTimeoutMs, dag }: ChainFields): object {
  const settings = { name, description, maxActiveRuns, runTimeoutMs };
  const given = Object.entries(settings).filter(([, value]) => value !== null && value !== undefined);
  return { ...Object.fromEntries(given), nodes: dag.nodes.map(inOrder) };
}

function inOrder(node: ChainNode): object {
  const fields = node as unknown as Value;
  const known = NODE_FIELDS.filter((field) => field in fields).map((field) => [field, fields[field]] as const);
  return { ...Object.fromEntries(known), ...fields };
}

export const NEW_CHAIN = yamlText({
  name: "new-chain",
  description: "What it is for",
  nodes: [
    { id: "first", type: "noop" },
    { id: "second", type: "noop", dependsOn: ["first"] },
  ],
});

/** What the API takes, or what is wrong with the text before it is asked. The text is the whole definition: what it lacks is removed. */
export function bodyOf(
  value: Value,
  isNew: boolean,
  text: Words,
): { body: ChainBody } | { problems: readonly Diagnostic[] } {
  const problems: Diagnostic[] = Object.keys(value)
    .filter((field) => !CHAIN_FIELDS.includes(field))
    .map((field) => ({ path: [field], message: text.unknownField(field), severity: "error" }));
  const { name, description = null, maxActiveRuns = null, runTimeoutMs = null, enabled } = value;
  if (name === undefined || name === null || name === "") problems.push({ message: text.noName, severity: "error" });
  if (enabled !== undefined && !isNew)
    problems.push({ path: ["enabled"], message: text.enabledElsewhere, severity: "error" });
  const dag = dagIn(value);
  if (!dag) problems.push({ message: text.noNodes, severity: "error" });
  if (problems.length > 0 || !dag) return { problems };
  const limits = { maxActiveRuns, runTimeoutMs };
  return { body: { name, description, ...limits, dagJson: dag, ...(enabled !== undefined && { enabled }) } };
}

/** The fields of a body whose nodes can be told apart. */
export function fieldsIn({
  name,
  description,
  maxActiveRuns,
  runTimeoutMs,
  dagJson,
}: ChainBody): ChainFields | undefined {
  const { nodes } = dagJson as { nodes?: unknown };
  const isList = Array.isArray(nodes) && nodes.every((node) => typeof (node as ChainNode | null)?.id === "string");
  return isList ? ({ name, description, maxActiveRuns, runTimeoutMs, dag: { nodes } } as ChainFields) : undefined;
}

function dagIn({ dag, nodes }: Value): object | undefined {
  if (typeof dag === "object" && dag !== null) return dag;
  return nodes === undefined ? undefined : { nodes };
}

/** The steps from the text to its nodes. */
function stepsToDag(value: Value): readonly string[] {
  return value["nodes"] === undefined && value["dag"] !== undefined ? ["dag"] : [];
}

export function pathToNode(value: Value, index: number): readonly string[] {
  return [...stepsToDag(value), "nodes", String(index), "id"];
}

interface DagProblem {
  path: string;
  message: string;
}

/** Why the server refused the text, at the places that it names. */
export function diagnosticsOf({ code, message, details }: ApiError, value: Value): readonly Diagnostic[] {
  const problems = details["problems"] as readonly DagProblem[] | undefined;
  if (problems) {
    const above = stepsToDag(value);
    return problems.map((one) => ({
      path: [...above, ...stepsOf(one.path)],
      message: one.message,
      severity: "error",
    }));
  }
  const field = code === "CHAIN_NAME_TAKEN" ? "name" : CHAIN_FIELDS.find((name) => message.includes(`\`${name}\``));
  return [{ message, severity: "error", ...(field !== undefined && { path: [field] }) }];
}

/** The steps of a path such as `nodes[2].cfg.url`. */
function stepsOf(path: string): string[] {
  return path.split(/[.[\]]+/).filter((step) => step !== "");
}

/** The nodes of a text that may not be valid: those that have an id, with their place in the list. */
export function nodesIn(value: Value): readonly (ChainNode & { index: number })[] {
  const { nodes } = (dagIn(value) ?? {}) as { nodes?: unknown };
  if (!Array.isArray(nodes)) return [];
  const seen = new Set<string>();
  return nodes.flatMap((node: unknown, index) => {
    const { id, type, dependsOn } = (node ?? {}) as { id?: unknown; type?: unknown; dependsOn?: unknown };
    if (typeof id !== "string" || id === "" || seen.has(id)) return [];
    seen.add(id);
    const parents = Array.isArray(dependsOn) ? dependsOn.filter((one) => typeof one === "string") : [];
    return [{ ...(node as object), id, type: typeof type === "string" ? type : "", dependsOn: parents, index }];
  });
}
