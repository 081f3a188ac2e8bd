/** A registry with a few types, one pool, and the problems of a DAG with them. */
import { Type } from "typebox";
import { expect } from "vitest";
import { chain } from "../types/chain.ts";
import { map } from "../types/map.ts";
import { nodeType } from "../types/node-type.ts";
import { noop } from "../types/noop.ts";
import { createRegistry } from "../types/registry.ts";
import { sleep } from "../types/sleep.ts";
import type { DagProblem, NodeDef } from "./dag.ts";
import { validateDag } from "./validate.ts";

const call = nodeType({
  type: "call",
  summary: "",
  cfg: Type.Object(
    { url: Type.String(), headers: Type.Optional(Type.Record(Type.String(), Type.String())) },
    { additionalProperties: false },
  ),
  execute: async () => ({}),
});
const known = { registry: createRegistry([noop, sleep, chain, map, call]), pools: new Set(["heavy"]) };

export function problemsOf(dag: unknown): DagProblem[] {
  const checked = validateDag(dag, known);
  return "problems" in checked ? checked.problems : [];
}
/** The problems of a node `x`, a child of a node `a`, with paths relative to the node. */
export function problemsWith(node: Record<string, unknown>): string[] {
  const nodes = [noopNode("a"), { id: "x", type: "noop", dependsOn: ["a"], ...node }];
  return problemsOf({ nodes }).map(({ path, nodeId, message }) => {
    expect(path).toMatch(/^nodes\[1\]\./);
    expect(nodeId).toBe("x");
    return `${path.slice("nodes[1].".length)}: ${message}`;
  });
}
export const noopNode = (id: string, dependsOn: string[] = []): NodeDef => ({ id, type: "noop", dependsOn });
export const many = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);
