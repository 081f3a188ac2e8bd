/** What differs between two definitions of a chain: nodes by their id, and the fields of the chain itself. */
import { hashKey } from "@tanstack/react-query";
import type { ChainNode } from "../api.ts";

export interface ChainDifference {
  added: readonly string[];
  removed: readonly string[];
  /** With the fields that differ. */
  changed: readonly { id: string; fields: readonly string[] }[];
  /** The same nodes in another order, which changes no run. */
  isReordered: boolean;
  /** Fields of the chain, such as its description. */
  fields: readonly string[];
}

interface Definition {
  dag: { nodes: readonly ChainNode[] };
}

export function differenceOf<One extends Definition>(before: One, after: One): ChainDifference {
  const old = new Map(before.dag.nodes.map((node) => [node.id, node]));
  const now = new Map(after.dag.nodes.map((node) => [node.id, node]));
  const kept = [...now.values()].flatMap((node) => {
    const was = old.get(node.id);
    return was ? [{ id: node.id, fields: changedFields(was, node) }] : [];
  });
  const added = [...now.keys()].filter((id) => !old.has(id));
  const removed = [...old.keys()].filter((id) => !now.has(id));
  const order = [...old.keys()].filter((id) => now.has(id));
  return {
    added,
    removed,
    changed: kept.filter(({ fields }) => fields.length > 0),
    isReordered: kept.some(({ id }, index) => order[index] !== id),
    fields: changedFields({ ...before, dag: null }, { ...after, dag: null }),
  };
}

export function isSame({ added, removed, changed, isReordered, fields }: ChainDifference): boolean {
  return added.length + removed.length + changed.length + fields.length === 0 && !isReordered;
}

/** An absent field and null are the same. */
function changedFields(before: object, after: object): string[] {
  const [old, now] = [before, after] as readonly Readonly<Record<string, unknown>>[];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => written(old?.[name]) !== written(now?.[name]));
}

/** JSON with its keys in order. */
function written(value: unknown): string {
  return hashKey([value ?? null]);
}
