/** The runs of a plan by time, with failures marked; one opens its slice. The arrow keys move between them. */
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
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
  // The one that Tab reaches; at first the newest.
  const [active, setActive] = useState<number>();
  const field = useRef<HTMLDivElement>(null);
  const found = bars.findIndex(({ item }) => item.run.runId === active);
  const at = found < 0 ? bars.length - 1 : found;
  const onKey = (event: KeyboardEvent) => {
    const steps: Partial<Record<string, number>> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      Home: -bars.length,
      End: bars.length,
    };
    const by = steps[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const next = bars[Math.min(Math.max(at + by, 0), bars.length - 1)];
    field.current?.querySelector<HTMLElement>(`[data-run="${next?.item.run.runId}"]`)?.focus();
  };
  return (
    <figure className={styles.timeLine} aria-label={text.timeLineOf}>
      <div className={styles.lanes} style={{ height: lanes * LANE_PX }} ref={field} onKeyDown={onKey}>
        {folds.map(({ left, width, ms }) => (
          <span
            key={left}
            className={styles.fold}
            style={{ left: percent(left), width: percent(width) }}
            title={text.folded(durationText(ms))}
          />
        ))}
        {bars.map(({ item: { run, fromMs, toMs }, lane, left, width }, index) => {
          const state = RUN_STATES[run.status];
          const label = text.runText(run.slice, run.attempt, text[`run${run.status}`], durationText(toMs - fromMs));
          return (
            <button
              key={run.runId}
              type="button"
              className={styles.run}
              data-state={state}
              data-run={run.runId}
              data-selected={run.sliceId === selected || undefined}
              title={run.error === null ? label : `${label}. ${run.error}`}
              aria-label={label}
              tabIndex={index === at ? 0 : -1}
              onFocus={() => setActive(run.runId)}
              onClick={() => onOpen(run.sliceId, run.runId)}
              style={{ left: percent(left), width: percent(width), top: lane * LANE_PX }}
            >
              {run.status === "FAILED" && GLYPHS.failed}
            </button>
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
