/** One slice: why it is not complete first, then its tasks, their runs, and the pages of the run that is open. */
import { Link } from "@tanstack/react-router";
import { useLive, useLiveList } from "../../api/live.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Drawer } from "../../parts/dialogs/Drawer.tsx";
import { Fields } from "../../parts/page/Fields.tsx";
import { Empty, Loaded } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { durationText } from "../../parts/times/durations.ts";
import { Elapsed } from "../../parts/times/Elapsed.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { AcceptGap } from "../AcceptGap.tsx";
import { type Batch, type Listed, type PlanDetail, paths, type Run, type SliceDetail, type Task } from "../api.ts";
import { CancelSlice, CancelTask } from "../control/CancelSlice.tsx";
import { Why } from "../control/Why.tsx";
import { HarvestAgain } from "../HarvestAgain.tsx";
import styles from "../harvest.module.css";
import { planWords } from "../plan-words.ts";
import { QuarantineLink } from "../source/QuarantineLink.tsx";
import { RUN_STATES, sliceState, TASK_STATES } from "../states.ts";
import { WindowText } from "../WindowText.tsx";
import { sliceWord } from "./SliceList.tsx";
import { expectedText, partText } from "./sizes.ts";

const BATCHES = 100;

interface SliceDrawerProps {
  planId: string;
  /** Undefined while it is fetched. */
  plan: PlanDetail | undefined;
  sliceId: number;
  openRun: number | undefined;
  onRun(runId: number | undefined): void;
  onClose(): void;
}

export function SliceDrawer({ planId, plan, sliceId, openRun, onRun, onClose }: SliceDrawerProps) {
  const text = useWords(planWords);
  const result = useLive<SliceDetail>(paths.slice(planId, sliceId), [{ kind: "plan", id: planId }]);
  const title = text.sliceTitle(result.data?.number, sliceId);
  return (
    <Drawer title={title} onClose={onClose}>
      <Loaded result={result}>
        {(slice) => (
          <>
            <SliceFacts planId={planId} plan={plan} slice={slice} />
            {slice.tasks.map((task) => (
              <TaskSection key={task.taskId} task={task} openRun={openRun} onRun={onRun} planId={planId} />
            ))}
          </>
        )}
      </Loaded>
    </Drawer>
  );
}

function SliceFacts({ planId, plan, slice }: Pick<SliceDrawerProps, "planId" | "plan"> & { slice: SliceDetail }) {
  const text = useWords(planWords);
  const { number } = useFormats();
  const { status, reason, accepted, expected, estimate, part, received, parentSliceId, sliceId } = slice;
  // One that was cancelled with its plan has no reason, and is no gap.
  const isMissing = status === "FAILED" || status === "INCOMPLETE" || (status === "CANCELLED" && reason !== null);
  // Of a part, the slice that has its window is the gap.
  const isGap = isMissing && accepted === null && slice.rootSliceId === null;
  return (
    <>
      <div className={styles.pair}>
        <StateMark state={sliceState(slice)} label={sliceWord(text, slice)} />
        <WindowText window={slice.window} />
      </div>
      {(status === "READY" || status === "SPLIT") && <Why planId={planId} sliceId={sliceId} />}
      {reason !== null && status !== "SPLIT" && <p className={styles.error}>{reason}</p>}
      <Fields
        rows={[
          [text.records, expected === null ? number(received) : text.recordsOf(number(received), number(expected))],
          [text.part, part && partText(text, part)],
          [text.expectedRecords, estimate && expectedText(text, number, estimate)],
          [
            text.quarantined,
            slice.quarantined > 0 && plan && (
              <QuarantineLink key="quarantined" {...plan}>
                {number(slice.quarantined)}
              </QuarantineLink>
            ),
          ],
          [text.missing, slice.missing > 0 ? number(slice.missing) : null],
          [text.pages, number(slice.batches)],
          [text.restarts, number(slice.generation)],
          [
            text.parent,
            parentSliceId === null ? null : (
              <Link key="parent" to="/harvest/plans/$planId" params={{ planId }} search={{ slice: parentSliceId }}>
                {parentSliceId}
              </Link>
            ),
          ],
          [
            text.acceptedBy,
            accepted && (
              <span key="by">
                {accepted.by}, <Time at={accepted.at} />: {accepted.reason}
              </span>
            ),
          ],
        ]}
      />
      {status === "READY" && (
        <div>
          <CancelSlice planId={planId} sliceId={sliceId} />
        </div>
      )}
      {isGap && plan && <HarvestAgain {...plan} window={slice.window} />}
      {isGap && <AcceptGap planId={planId} sliceId={sliceId} />}
    </>
  );
}

interface TaskSectionProps {
  planId: string;
  task: Task;
  openRun: number | undefined;
  onRun(runId: number | undefined): void;
}

function TaskSection({ planId, task, openRun, onRun }: TaskSectionProps) {
  const text = useWords(planWords);
  const { taskId, status, waitReason, scheduledAt, lost, runs } = task;
  return (
    <section className={styles.section}>
      <h3 className={styles.pair}>
        {text.task(taskId)} <StateMark state={TASK_STATES[status]} label={text[`task${status}`]} />
      </h3>
      <Fields
        rows={[
          [text.waitsFor, waitReason],
          [text.due, status === "QUEUED" ? <Time key="due" at={scheduledAt} relative due /> : null],
          [text.lostProcesses, lost > 0 ? lost : null],
        ]}
      />
      {(status === "QUEUED" || status === "EXECUTING") && (
        <div>
          <CancelTask taskId={taskId} />
        </div>
      )}
      <ul className={styles.runs}>
        {runs.map((run) => (
          <RunItem key={run.runId} planId={planId} run={run} isOpen={run.runId === openRun} onRun={onRun} />
        ))}
      </ul>
    </section>
  );
}

interface RunItemProps {
  planId: string;
  run: Run;
  isOpen: boolean;
  onRun(runId: number | undefined): void;
}

function RunItem({ planId, run, isOpen, onRun }: RunItemProps) {
  const text = useWords(planWords);
  const { number } = useFormats();
  const { runId, attempt, status, error, startedAt, endedAt, stats } = run;
  return (
    <li>
      <button
        type="button"
        className={styles.runHead}
        aria-expanded={isOpen}
        onClick={() => onRun(isOpen ? undefined : runId)}
      >
        <StateMark state={RUN_STATES[status]} label={text[`run${status}`]} />
        <b>{text.run(attempt)}</b>
        <span className={styles.soft}>
          <Time at={startedAt} /> <Elapsed from={startedAt} to={endedAt} />
        </span>
      </button>
      {error !== null && <p className={status === "FAILED" ? styles.error : styles.soft}>{error}</p>}
      {isOpen && (
        <>
          <Fields
            rows={[
              [text.requests, stats.reqCount === undefined ? null : number(stats.reqCount)],
              [text.retries, stats.retryCount ? number(stats.retryCount) : null],
              [text.refused, stats["429Count"] ? number(stats["429Count"]) : null],
              [text.atGate, stats.waitTotalMs === undefined ? null : durationText(stats.waitTotalMs)],
              [text.perAnswer, stats.avgLatencyMs === undefined ? null : durationText(stats.avgLatencyMs)],
              [text.startedAgain, stats.restarts?.join("; ")],
            ]}
          />
          <Batches planId={planId} runId={runId} />
        </>
      )}
    </li>
  );
}

function Batches({ planId, runId }: { planId: string; runId: number }) {
  const text = useWords(planWords);
  const shared = useWords(common);
  const { number } = useFormats();
  const result = useLiveList<Listed<Batch>>(
    (after) => paths.batches(runId, { after, limit: BATCHES }),
    ({ next }) => next,
    [{ kind: "plan", id: planId }],
  );
  return (
    <Loaded result={result}>
      {(pages) => {
        const batches = pages.flatMap(({ items }) => items);
        if (batches.length === 0) return <Empty>{text.noBatches}</Empty>;
        return (
          <>
            <div className={styles.scroll} tabIndex={0} role="region" aria-label={text.batches}>
              <table className={styles.table}>
                <caption className="visually-hidden">{text.batches}</caption>
                <thead>
                  <tr>
                    <th scope="col">{text.number}</th>
                    <th scope="col">{text.answer}</th>
                    <th scope="col">{text.items}</th>
                    <th scope="col">{text.atGate}</th>
                    <th scope="col">{text.perAnswer}</th>
                    <th scope="col">{text.request}</th>
                  </tr>
                </thead>
                <tbody>
                  {batches.map(({ generation, number: no, response, stats, request }) => (
                    <tr key={`${generation}.${no}`}>
                      <td>{generation > 1 ? `${generation}.${no}` : no}</td>
                      <td>{response.status}</td>
                      <td>{number(stats.items ?? 0)}</td>
                      <td>{durationText(response.rate?.waitMs ?? 0)}</td>
                      <td>{durationText(stats.latencyMs ?? 0)}</td>
                      <td>
                        <code title={request.url}>
                          {request.method} {request.url}
                        </code>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {result.hasNextPage && (
              <Button isPending={result.isFetchingNextPage} onPress={() => void result.fetchNextPage()}>
                {shared.loadMore}
              </Button>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
