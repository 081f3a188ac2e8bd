/** The runs of a plan by time, with failures marked; a click opens the slice of a run. */
import { useMemo } from "react";
import { useLive } from "../../api/live.ts";
import { Empty, Loaded, Panel } from "../../parts/page/Page.tsx";
import { GLYPHS } from "../../parts/states/state.ts";
import { durationText } from "../../parts/times/durations.ts";
import { useNow } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import { type Listed, type PlanRun, paths } from "../api.ts";
import styles from "../harvest.module.css";
import { planWords } from "../plan-words.ts";
import { RUN_STATES } from "../states.ts";
import { drawn } from "./time-line.ts";

const RUNS_MAX = 1_000;
const LANE_PX = 18;

interface TimeLineProps {
  planId: string;
  selected: number | undefined;
  onOpen(sliceId: number, runId: number): void;
}

export function TimeLine({ planId, selected, onOpen }: TimeLineProps) {
  const text = useWords(planWords);
  const { number } = useFormats();
  const result = useLive<Listed<PlanRun>>(paths.runs(planId, RUNS_MAX), [{ kind: "plan", id: planId }]);
  const isCut = result.data?.next !== null && result.data !== undefined;
  return (
    <Panel
      title={text.timeLine}
      aside={isCut && <span className={styles.soft}>{text.newestRuns(number(RUNS_MAX))}</span>}
    >
      <Loaded result={result}>
        {({ items }) =>
          items.length === 0 ? <Empty>{text.noRuns}</Empty> : <Lanes runs={items} selected={selected} onOpen={onOpen} />
        }
      </Loaded>
    </Panel>
  );
}

interface LanesProps extends Omit<TimeLineProps, "planId"> {
  runs: readonly PlanRun[];
}

function Lanes(props: LanesProps) {
  return props.runs.some(({ endedAt }) => endedAt === null) ? <Growing {...props} /> : <Bars {...props} nowMs={0} />;
}

function Growing(props: LanesProps) {
  return <Bars {...props} nowMs={useNow()} />;
}

function Bars({ runs, selected, onOpen, nowMs }: LanesProps & { nowMs: number }) {
  const text = useWords(planWords);
  const { time } = useFormats();
  const spans = useMemo(
    () =>
      runs.map((run) => {
        const fromMs = Date.parse(run.startedAt);
        return { run, fromMs, toMs: Math.max(fromMs, run.endedAt === null ? nowMs : Date.parse(run.endedAt)) };
      }),
    [runs, nowMs],
  );
  const { lanes, bars, folds } = useMemo(() => drawn(spans), [spans]);
  const [firstMs, lastMs] = [
    Math.min(...spans.map(({ fromMs }) => fromMs)),
    Math.max(...spans.map(({ toMs }) => toMs)),
  ];
  return (
    <figure className={styles.timeLine} aria-label={text.timeLineOf}>
      <div
        className={styles.lanes}
        style={{ height: lanes * LANE_PX }}
        onClick={({ target }) => {
          const { slice, run } = (target as HTMLElement).dataset;
          if (slice !== undefined && run !== undefined) onOpen(Number(slice), Number(run));
        }}
      >
        {folds.map(({ left, width, ms }) => (
          <span
            key={left}
            className={styles.fold}
            style={{ left: percent(left), width: percent(width) }}
            title={text.folded(durationText(ms))}
          />
        ))}
        {bars.map(({ item: { run, fromMs, toMs }, lane, left, width }) => {
          const state = RUN_STATES[run.status];
          const label = text.runText(run.slice, run.attempt, text[`run${run.status}`], durationText(toMs - fromMs));
          return (
            <span
              key={run.runId}
              className={styles.run}
              data-state={state}
              data-slice={run.sliceId}
              data-run={run.runId}
              data-selected={run.sliceId === selected || undefined}
              title={run.error === null ? label : `${label}. ${run.error}`}
              style={{ left: percent(left), width: percent(width), top: lane * LANE_PX }}
            >
              {run.status === "FAILED" && GLYPHS.failed}
            </span>
          );
        })}
      </div>
      <div className={styles.edges}>
        <span>{time(firstMs)}</span>
        <span>{time(lastMs)}</span>
      </div>
    </figure>
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}
