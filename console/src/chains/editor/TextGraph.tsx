/** The graph of a text while it is typed. While the text cannot be read, the last graph stays, pale. */
import { useMemo, useState } from "react";
import type { Diagnostic } from "../../parts/editor/text.ts";
import { Graph } from "../../parts/graph/Graph.tsx";
import { Empty, Skeleton } from "../../parts/page/Page.tsx";
import { useWords } from "../../words/words.ts";
import styles from "../definition.module.css";
import { iconOf } from "../states.ts";
import { nodesIn } from "./definition.ts";
import { definitionWords } from "./words.ts";

interface TextGraphProps {
  /** The text has not been read yet. */
  isUnread: boolean;
  /** Undefined while the text cannot be read. */
  value: Readonly<Record<string, unknown>> | undefined;
  diagnostics: readonly Diagnostic[];
  /** The place of a node in the list of nodes. */
  onOpen(index: number): void;
}

export function TextGraph({ isUnread, value, diagnostics, onOpen }: TextGraphProps) {
  const text = useWords(definitionWords);
  const [last, setLast] = useState(value);
  if (value && value !== last) setLast(value);
  const shown = value ?? last;
  const isOld = value === undefined;
  const found = useMemo(() => (shown ? nodesIn(shown) : []), [shown]);
  const wrong = useMemo(() => new Set(diagnostics.flatMap(({ path }) => indexIn(path) ?? [])), [diagnostics]);
  const nodes = useMemo(
    () =>
      found.map(({ id, type, index }) => ({
        id,
        title: id,
        subtitle: type,
        icon: iconOf(type),
        isFaded: isOld,
        mark: wrong.has(index) ? text.problem : undefined,
      })),
    [found, isOld, wrong, text],
  );
  const edges = useMemo(
    () => found.flatMap(({ id, dependsOn = [] }) => dependsOn.map((from) => ({ from, to: id }))),
    [found],
  );
  return (
    <section className={styles.graph} aria-label={text.preview}>
      {isOld && !isUnread && <p className={styles.old}>{text.lastGraph}</p>}
      {isUnread ? (
        <Skeleton />
      ) : nodes.length === 0 ? (
        <Empty>{text.noGraph}</Empty>
      ) : (
        <Graph
          label={text.preview}
          nodes={nodes}
          edges={edges}
          onOpen={(id) => {
            const at = found.find((node) => node.id === id);
            if (at && !isOld) onOpen(at.index);
          }}
        />
      )}
    </section>
  );
}

/** The node that a path such as `nodes, 2, cfg` is in. */
function indexIn(path: readonly string[] = []): number | undefined {
  const at = path.indexOf("nodes");
  const index = Number(path[at + 1]);
  return at === -1 || Number.isNaN(index) ? undefined : index;
}
