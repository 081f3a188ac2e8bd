/** Is the source slow, or do we throttle? Where the time goes, runs with their failures, and the schedules. */
import { Link } from "@tanstack/react-router";
import { useLive } from "../../api/live.ts";
import { Plot } from "../../parts/charts/Plot.tsx";
import { Select } from "../../parts/controls/Select.tsx";
import { Empty, Loaded, Panel } from "../../parts/page/Page.tsx";
import { GLYPHS, type State } from "../../parts/states/state.ts";
import { durationText, percentText } from "../../parts/times/durations.ts";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import { type Pace, paths } from "../api.ts";
import { Figures } from "../Figures.tsx";
import styles from "../harvest.module.css";
import { useSourceSearch } from "../use-search.ts";
import { harvestWords } from "../words.ts";
import { causeOf, perRequest, sharesOf } from "./pace.ts";
import { Schedules } from "./Schedules.tsx";

const HOURS = [1, 6, 24, 168, 720] as const;
const FAILURES_SHOWN = 8;

export function ActivityTab({ source }: { source: string }) {
  const text = useWords(harvestWords);
  const {
    search: { hours },
    set,
  } = useSourceSearch(source);
  const result = useLive<Pace>(paths.pace(source, hours), [{ kind: "plan" }], { atMostEveryMs: 2_000 });
  return (
    <>
      <Panel
        title={text.whereTimeGoes}
        aside={
          <Select
            label={text.hours}
            isLabelHidden
            value={String(hours ?? result.data?.hours ?? 24)}
            options={HOURS.map((n) => [String(n), n <= 24 ? text.lastHours(n) : text.lastDays(n / 24)] as const)}
            onChange={(next) => set({ hours: Number(next) })}
          />
        }
      >
        <Loaded result={result}>{(pace) => <WhereTimeGoes source={source} pace={pace} />}</Loaded>
      </Panel>
      {result.data && result.data.failures.length > 0 && <Failures pace={result.data} />}
      <Schedules source={source} />
    </>
  );
}

function WhereTimeGoes({ source, pace }: { source: string; pace: Pace }) {
  const text = useWords(harvestWords);
  const { number } = useFormats();
  const verdict = useVerdict(pace);
  if (pace.runs === 0) return <Empty>{text.noRuns}</Empty>;
  const shares = sharesOf(pace);
  const untilMs = Date.parse(pace.since) + 47 * pace.bucketSec * 1_000;
  const { x, wait, answer } = perRequest(pace, untilMs);
  // The plot shows its newest values, so it ends where there are some.
  const asked = wait.findLastIndex((value) => value !== null) + 1;
  return (
    <div className={styles.stack}>
      <p className={styles.verdict}>{verdict}</p>
      <ShareBar shares={shares} />
      <Figures
        of={[
          [text.runsInPeriod, number(pace.runs)],
          [text.failedRuns, number(pace.failed)],
          [text.requests, number(pace.requests)],
          [text.throttled, number(pace.throttled)],
          [text.records, number(pace.records)],
        ]}
      />
      <RunStrip source={source} pace={pace} x={x} />
      <Plot
        label={text.perRequest}
        x={x.slice(0, asked)}
        xTitle={text.hours}
        lines={[
          { name: text.waitLine, values: wait.slice(0, asked), colour: "waiting" },
          { name: text.answerLine, values: answer.slice(0, asked), colour: "running" },
        ]}
        valueText={durationText}
        height={120}
      />
      {pace.parked.length > 0 && (
        <section className={styles.section}>
          <h3>{text.parked}</h3>
          <ul className={styles.lines}>
            {pace.parked.map(({ reason, times, ms }) => (
              <li key={reason}>
                <span>{reason}</span>
                <span className={styles.soft}>
                  {text.parkedTimes(times)}, {durationText(ms)}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function useVerdict(pace: Pace): string {
  const text = useWords(harvestWords);
  const { number } = useFormats();
  const shares = sharesOf(pace);
  switch (causeOf(pace)) {
    case "none":
      return text.noRuns;
    case "throttled":
      return text.sourceThrottles(number(pace.throttled));
    case "gate":
      return text.gateIsSlow(percentText(shares.wait));
    case "source":
      return text.sourceIsSlow(percentText(shares.answer), durationText(pace.answerMs / Math.max(1, pace.requests)));
    case "own":
      return text.ownIsSlow(percentText(shares.own));
  }
}

function ShareBar({ shares }: { shares: ReturnType<typeof sharesOf> }) {
  const text = useWords(harvestWords);
  const parts = [
    { name: text.atGate, share: shares.wait, state: "waiting" },
    { name: text.atSource, share: shares.answer, state: "running" },
    { name: text.ownWork, share: shares.own, state: "skipped" },
  ] as const;
  return (
    <figure className={styles.section} aria-label={text.whereTimeGoes}>
      <div className={styles.shares} aria-hidden="true">
        {parts.map(({ name, share, state }) => (
          <i key={name} data-state={state} style={{ flexGrow: share }} />
        ))}
      </div>
      <figcaption className={styles.legend}>
        {parts.map(({ name, share, state }) => (
          <span key={name}>
            <i data-state={state} aria-hidden="true" /> {name} <b>{percentText(share)}</b>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

/** One mark for each part of the period, below each other with the plot. */
function RunStrip({ source, pace, x }: { source: string; pace: Pace; x: readonly number[] }) {
  const text = useWords(harvestWords);
  const { time } = useFormats();
  const byTime = new Map(pace.buckets.map((bucket) => [Date.parse(bucket.at), bucket]));
  return (
    <div className={styles.strip} role="img" aria-label={text.timeLineOf(source)}>
      {x.map((at) => {
        const bucket = byTime.get(at);
        const state: State | undefined =
          bucket && (bucket.failed > 0 ? "failed" : bucket.running > 0 ? "running" : "success");
        return (
          <span
            key={at}
            data-state={state}
            title={bucket ? text.bucketText(time(at), bucket.runs, bucket.failed) : undefined}
          >
            {state === "failed" && GLYPHS.failed}
          </span>
        );
      })}
    </div>
  );
}

function Failures({ pace }: { pace: Pace }) {
  const text = useWords(harvestWords);
  return (
    <Panel title={text.failures}>
      <ul className={styles.rows}>
        {pace.failures.slice(0, FAILURES_SHOWN).map(({ runId, planId, sliceId, at, reason }) => (
          <li key={runId}>
            <Time at={at} />
            <Link to="/harvest/plans/$planId" params={{ planId }} search={{ slice: sliceId, run: runId }}>
              {text.slice} {sliceId}
            </Link>
            <span className={styles.reason} title={reason ?? undefined}>
              {reason}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
