/** The same nodes as in the graph, as a list: for screen readers, and for runs that are too large to be drawn. */
import { type Column, DataList } from "../../parts/page/DataList.tsx";
import { Sentence } from "../../parts/page/Sentence.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Elapsed } from "../../parts/times/Elapsed.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import type { NodeStatus, RunNode } from "../api.ts";
import styles from "../chains.module.css";
import { attemptText } from "../names.ts";
import { NODE_STATES } from "../states.ts";
import { waitsText } from "../waits.ts";
import { chainWords } from "../words.ts";
import { useEffectWords } from "./PreviewBar.tsx";
import type { Preview } from "./preview.ts";

interface NodeTableProps {
  label: string;
  nodes: readonly RunNode[];
  selected: string | undefined;
  preview: Preview | undefined;
  onOpen(nodeId: string): void;
}

export function NodeTable({ label, nodes, selected, preview, onOpen }: NodeTableProps) {
  const text = useWords(chainWords);
  const shared = useWords(common);
  const { time } = useFormats();
  const effects = useEffectWords();
  return (
    <div className={styles.view}>
      <DataList
        label={label}
        rows={nodes}
        columns={columnsOf(text, shared, time, preview && ((nodeId) => effectOn(preview, nodeId, effects)))}
        keyOf={({ nodeId }) => nodeId}
        selected={selected}
        onOpen={({ nodeId }) => onOpen(nodeId)}
        fill
      />
    </div>
  );
}

function effectOn({ moves }: Preview, nodeId: string, effects: (to: NodeStatus) => string): string {
  const to = moves.get(nodeId);
  return to === undefined ? "" : effects(to);
}

/** `effectOf` names what the action in preview does to a node. */
function columnsOf(
  text: (typeof chainWords)["en"],
  shared: (typeof common)["en"],
  time: (at: string) => string,
  effectOf: ((nodeId: string) => string) | undefined,
): readonly Column<RunNode>[] {
  return [
    {
      name: "state",
      title: shared.state,
      width: "110px",
      cell: ({ status }) => <StateMark state={NODE_STATES[status]} />,
    },
    {
      name: "node",
      title: text.node,
      width: "minmax(120px, 2fr)",
      cell: ({ nodeId }) => <span title={nodeId}>{nodeId}</span>,
    },
    ...(effectOf
      ? [
          {
            name: "effect",
            title: text.effect,
            width: "110px",
            cell: ({ nodeId }: RunNode) => effectOf(nodeId),
          },
        ]
      : []),
    { name: "type", title: text.type, width: "80px", wideOnly: true, cell: ({ type }) => type },
    {
      name: "attempt",
      title: text.attempt,
      width: "70px",
      wideOnly: true,
      align: "end",
      cell: attemptText,
    },
    {
      name: "took",
      title: shared.duration,
      width: "80px",
      align: "end",
      cell: (node) => <Elapsed from={node.startedAt} to={node.endedAt} />,
    },
    {
      name: "reason",
      title: shared.reason,
      width: "minmax(100px, 3fr)",
      isBelow: true,
      cell: (node) => {
        const { lastError, type } = node;
        const waits = waitsText(node, text, time);
        const reason = lastError ?? (waits && text.waitingFor(waits));
        if (!reason) return <span className="narrow-only">{type}</span>;
        return (
          <span title={reason}>
            <Sentence text={reason} />
          </span>
        );
      },
    },
  ];
}
