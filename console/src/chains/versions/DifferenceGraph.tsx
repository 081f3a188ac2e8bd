/** The graph of two definitions in one: what was added, removed or changed is marked, the rest is pale. */
import { useMemo } from "react";
import { Graph } from "../../parts/graph/Graph.tsx";
import { useWords } from "../../words/words.ts";
import type { ChainNode } from "../api.ts";
import styles from "../chains.module.css";
import { definitionWords } from "../editor/words.ts";
import { iconOf } from "../states.ts";
import type { ChainDifference } from "./difference.ts";

interface DifferenceGraphProps {
  label: string;
  before: readonly ChainNode[];
  after: readonly ChainNode[];
  difference: ChainDifference;
}

export function DifferenceGraph({ label, before, after, difference }: DifferenceGraphProps) {
  const text = useWords(definitionWords);
  const { nodes, edges } = useMemo(() => {
    const removed = new Set(difference.removed);
    const marks = new Map([
      ...difference.added.map((id) => [id, text.added] as const),
      ...difference.removed.map((id) => [id, text.removed] as const),
      ...difference.changed.map(({ id }) => [id, text.changed] as const),
    ]);
    const all = [...after, ...before.filter(({ id }) => removed.has(id))];
    return {
      nodes: all.map(({ id, type }) => ({
        id,
        title: id,
        subtitle: type,
        icon: iconOf(type),
        mark: marks.get(id),
        markTone: removed.has(id) ? ("soft" as const) : ("strong" as const),
        isFaded: !marks.has(id),
      })),
      edges: all.flatMap(({ id, dependsOn = [] }) => dependsOn.map((from) => ({ from, to: id }))),
    };
  }, [before, after, difference, text]);
  return (
    <div className={styles.view}>
      <Graph label={label} nodes={nodes} edges={edges} />
    </div>
  );
}
