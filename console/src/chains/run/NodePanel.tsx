/** One node of a run: the error first, then its attempts and its artifact. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Drawer } from "../../parts/dialogs/Drawer.tsx";
import { CodeText } from "../../parts/page/CodeText.tsx";
import { ErrorText } from "../../parts/page/ErrorText.tsx";
import { Fields } from "../../parts/page/Fields.tsx";
import { Loaded } from "../../parts/page/Page.tsx";
import { Sentence } from "../../parts/page/Sentence.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { percentText } from "../../parts/times/durations.ts";
import { Elapsed } from "../../parts/times/Elapsed.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { type Attempt, type NodeDetail, paths, type Run, type RunNode } from "../api.ts";
import styles from "../chains.module.css";
import { AttemptSelect, attemptOf } from "../logs/AttemptSelect.tsx";
import { LogView } from "../logs/LogView.tsx";
import { attemptText, shortRunId } from "../names.ts";
import { attemptState, NODE_STATES } from "../states.ts";
import { waitsText } from "../waits.ts";
import { chainWords } from "../words.ts";
import type { Previews } from "./preview.ts";
import { runWords } from "./words.ts";

interface NodePanelProps {
  run: Run;
  node: RunNode;
  previews: Previews;
  /** Of the log, as in the address. */
  attempt: number | undefined;
  line: string | undefined;
  onLog(change: { attempt?: number | undefined; line?: string | undefined }): void;
  onClose(): void;
}

export function NodePanel({ run, node, previews, attempt, line, onLog, onClose }: NodePanelProps) {
  const text = useWords(chainWords);
  const shared = useWords(common);
  const why = useWhyNot("run:control");
  const { runId, jobName, opTime } = run;
  const { nodeId, status } = node;
  const more = useWords(runWords);
  const { time } = useFormats();
  const waits = waitsText(node, text, time);
  const shown = attemptOf(node, attempt);
  const isRetryable = status === "FAILED" || status === "STOPPED";
  return (
    <Drawer
      title={nodeId}
      onClose={onClose}
      actions={
        <>
          {isRetryable && (
            <Button
              icon="retry"
              kind="primary"
              why={why}
              isPending={previews.isBusy}
              onPress={() => void previews.ask("retry", nodeId)}
            >
              {text.retry}
            </Button>
          )}
          {(isRetryable || status === "RUNNING") && (
            <Button
              icon="check"
              why={why}
              isPending={previews.isBusy}
              onPress={() => void previews.ask("complete", nodeId)}
            >
              {text.complete}
            </Button>
          )}
        </>
      }
    >
      <p className={styles.ofRun}>{[jobName, opTime].filter(Boolean).join(" · ")}</p>
      <StateMark state={NODE_STATES[status]} />
      {node.lastError !== null && <ErrorText>{node.lastError}</ErrorText>}
      {node.attempt > 0 && (
        <>
          <div className={styles.logHead}>
            <AttemptSelect node={node} attempt={shown} onChange={onLog} />
            <Link
              to="."
              search={((before: object) => ({ ...before, tab: "log", node: nodeId })) as never}
              className={styles.logLink}
            >
              {more.openLog}
            </Link>
          </div>
          <LogView
            runId={runId}
            nodeId={nodeId}
            attempt={shown}
            isRunning={status === "RUNNING" && shown === node.attempt}
            line={line}
            onLine={(next) => onLog({ line: next })}
          />
        </>
      )}
      <Fields
        rows={[
          [text.waitsFor, waits !== undefined && <Sentence key="waits" text={waits} />],
          [text.type, node.type],
          [text.attempt, attemptText(node)],
          [text.started, node.startedAt && <Time key="started" at={node.startedAt} />],
          [shared.duration, node.startedAt && <Elapsed key="took" from={node.startedAt} to={node.endedAt} />],
          [text.progress, node.progressNote ?? (node.progress === null ? null : percentText(node.progress))],
          [text.worker, node.worker],
          [
            text.childRun,
            node.childRunId && (
              <Link key="run" to="/chains/runs/$runId" params={{ runId: node.childRunId }}>
                {shortRunId(node.childRunId)}
              </Link>
            ),
          ],
        ]}
      />
      {node.attempt > 1 && (
        <Folded title={text.attempts}>
          <Attempts runId={runId} node={node} />
        </Folded>
      )}
      {node.endedAt !== null && (
        <Folded title={text.artifact}>
          <Artifact runId={runId} nodeId={nodeId} />
        </Folded>
      )}
    </Drawer>
  );
}

/** What it shows is read when it is opened. */
function Folded({ title, children }: { title: string; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children}
    </details>
  );
}

function Attempts({ runId, node }: { runId: string; node: RunNode }) {
  const result = useLive<readonly Attempt[]>(paths.attempts(runId, node.nodeId), [{ kind: "run", id: runId }]);
  return (
    <Loaded result={result}>
      {(attempts) =>
        attempts
          .filter((one) => one.attempt !== node.attempt)
          .map((one) => (
            <div key={one.attempt}>
              {one.attempt}. <StateMark state={attemptState(one.status)} />
              {one.error !== null && <ErrorText>{one.error}</ErrorText>}
            </div>
          ))
      }
    </Loaded>
  );
}

function Artifact({ runId, nodeId }: { runId: string; nodeId: string }) {
  const shared = useWords(common);
  const result = useLive<NodeDetail>(paths.node(runId, nodeId), [{ kind: "run", id: runId }]);
  return (
    <Loaded result={result}>
      {({ artifactJson }) =>
        artifactJson === null ? <p>{shared.nothingHere}</p> : <CodeText>{artifactJson}</CodeText>
      }
    </Loaded>
  );
}
