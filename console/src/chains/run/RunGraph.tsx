/** The nodes of a run as a graph, with their live states and, before an action, what it would do to each. */
import { useMemo } from "react";
import { Graph } from "../../parts/graph/Graph.tsx";
import type { GraphNode } from "../../parts/graph/model.ts";
import { Sentence } from "../../parts/page/Sentence.tsx";
import { percentText } from "../../parts/times/durations.ts";
import { Elapsed } from "../../parts/times/Elapsed.tsx";
import { useNow } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import type { NodeStatus, RunNode } from "../api.ts";
import styles from "../chains.module.css";
import { attemptText } from "../names.ts";
import { iconOf, NODE_STATES } from "../states.ts";
import { waitsText } from "../waits.ts";
import { chainWords } from "../words.ts";
import { useEffectWords } from "./PreviewBar.tsx";
import type { Preview } from "./preview.ts";

interface RunGraphNode extends GraphNode {
  type: string;
  status: NodeStatus;
  attempt: number;
  maxAttempts: number;
  startedAt: string | null;
  endedAt: string | null;
  dueAt: string | null;
  progress: number | null;
  /** What a node that does not run waits for. */
  waitsFor: string | undefined;
}

interface RunGraphProps {
  label: string;
  nodes: readonly RunNode[];
  selected: string | undefined;
  preview: Preview | undefined;
  onOpen(nodeId: string): void;
  depth: string | undefined;
  onDepth(depth: string): void;
}

export function RunGraph({ label, nodes, selected, preview, onOpen, depth, onDepth }: RunGraphProps) {
  const effects = useEffectWords();
  const text = useWords(chainWords);
  const { time } = useFormats();
  const edges = useMemo(
    () => nodes.flatMap(({ nodeId, dependsOn }) => dependsOn.map((from) => ({ from, to: nodeId }))),
    [nodes],
  );
  const drawn = nodes.map((node): RunGraphNode => {
    const { nodeId, type, status, attempt, maxAttempts, startedAt, endedAt, dueAt, progress } = node;
    const to = preview?.moves.get(nodeId);
    return {
      id: nodeId,
      title: nodeId,
      icon: iconOf(type),
      state: NODE_STATES[status],
      mark: to === undefined ? undefined : effects(to),
      markTone: to === "PENDING" || to === "SKIPPED" ? "soft" : "strong",
      isFaded: preview !== undefined && to === undefined,
      type,
      status,
      attempt,
      maxAttempts,
      startedAt,
      endedAt,
      dueAt,
      progress,
      waitsFor: waitsText(node, text, time),
    };
  });
  return (
    <div className={styles.view}>
      <Graph
        label={label}
        nodes={drawn}
        edges={edges}
        selected={selected}
        onOpen={onOpen}
        depth={depth}
        onDepth={onDepth}
        Content={NodeLine}
      />
    </div>
  );
}

function NodeLine({ node }: { node: RunGraphNode }) {
  const text = useWords(chainWords);
  const { type, status, dueAt, progress, waitsFor } = node;
  if (status === "PENDING" && waitsFor)
    return (
      <div className={styles.line} title={text.waitingFor(waitsFor)}>
        <span className={styles.waits}>
          <Sentence text={text.waitingFor(waitsFor)} />
        </span>
      </div>
    );
  return (
    <div className={styles.line}>
      <span>{type}</span>
      {status === "RETRYING" && dueAt !== null ? (
        <Countdown node={node} dueAt={dueAt} />
      ) : (
        <span>
          {status === "RUNNING" && progress !== null && `${percentText(progress)} · `}
          <Elapsed from={node.startedAt} to={node.endedAt} />
        </span>
      )}
    </div>
  );
}

function Countdown({ node, dueAt }: { node: RunGraphNode; dueAt: string }) {
  const text = useWords(chainWords);
  const seconds = Math.max(0, Math.ceil((Date.parse(dueAt) - useNow()) / 1_000));
  const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  return <span>{text.retryIn(attemptText(node), time)}</span>;
}
