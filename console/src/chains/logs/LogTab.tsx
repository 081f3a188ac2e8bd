/** The log of a node with the page to itself, with the choice of the node and of the attempt. */

import { Select } from "../../parts/controls/Select.tsx";
import { ErrorText } from "../../parts/page/ErrorText.tsx";
import { Empty } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { useWords } from "../../words/words.ts";
import type { RunNode } from "../api.ts";
import styles from "../chains.module.css";
import { runWords } from "../run/words.ts";
import { NODE_STATES } from "../states.ts";
import { chainWords } from "../words.ts";
import { AttemptSelect, attemptOf } from "./AttemptSelect.tsx";
import { type LogFilter, LogView } from "./LogView.tsx";

interface LogTabProps {
  runId: string;
  nodes: readonly RunNode[];
  selected: string | undefined;
  attempt: number | undefined;
  line: string | undefined;
  filter: LogFilter;
  onChange(change: LogFilter & { node?: string; attempt?: number | undefined; line?: string | undefined }): void;
}

/** More would be too many for a list that opens. */
const CHOICES_MAX = 1_000;

export function LogTab({ runId, nodes, selected, attempt, line, filter, onChange }: LogTabProps) {
  const text = useWords(runWords);
  const chain = useWords(chainWords);
  const started = nodes.filter((one) => one.attempt > 0);
  const node = started.find(({ nodeId }) => nodeId === selected) ?? started.find(isAtWork) ?? started[0];
  if (!node) return <Empty>{text.notStarted}</Empty>;
  const shown = attemptOf(node, attempt);
  const choices = started.slice(0, CHOICES_MAX);
  if (!choices.includes(node)) choices.push(node);
  return (
    <>
      <div className={styles.filters}>
        <Select
          label={chain.node}
          isLabelHidden
          value={node.nodeId}
          options={choices.map(({ nodeId }) => [nodeId, nodeId] as const)}
          onChange={(nodeId) => onChange({ node: nodeId, attempt: undefined, line: undefined })}
        />
        <AttemptSelect node={node} attempt={shown} onChange={onChange} />
        <StateMark state={NODE_STATES[node.status]} />
      </div>
      {node.lastError !== null && shown === node.attempt && <ErrorText>{node.lastError}</ErrorText>}
      <LogView
        runId={runId}
        nodeId={node.nodeId}
        attempt={shown}
        isRunning={node.status === "RUNNING" && shown === node.attempt}
        line={line}
        onLine={(next) => onChange({ node: node.nodeId, line: next })}
        filter={filter}
        onFilter={onChange}
        isWhole
      />
    </>
  );
}

function isAtWork({ status }: RunNode): boolean {
  return status === "FAILED" || status === "RUNNING";
}
