/** Throughput and lag over the same time as the lanes, with one cursor. */
import { useMemo } from "react";
import { Plot } from "../parts/charts/Plot.tsx";
import { Panel } from "../parts/page/Page.tsx";
import { durationText } from "../parts/times/durations.ts";
import { useWords } from "../words/words.ts";
import type { Activity } from "./api.ts";
import styles from "./OverviewPage.module.css";
import { overview } from "./words.ts";

const SYNC = "overview";
const HEIGHT_PX = 130;
/** So that the times are below those of the lanes: their names, and the padding beside them. */
const AXIS_PX = 244;
const AXIS_NARROW_PX = 116;
const NARROW = "(max-width: 700px)";
const TITLES = { run: "runs", model: "models", plan: "plans", delivery: "deliveries" } as const;

export function ActivityPlots({ activity }: { activity: Activity }) {
  const text = useWords(overview);
  const { from, to, bucketMs, buckets, ended, lags } = activity;
  const axisPx = matchMedia(NARROW).matches ? AXIS_NARROW_PX : AXIS_PX;
  const x = useMemo(
    () => Array.from({ length: buckets }, (_, bucket) => Date.parse(from) + bucket * bucketMs),
    [from, bucketMs, buckets],
  );
  const lines = useMemo(() => {
    const named = ended
      .filter((one) => one.buckets.length > 0)
      .map((one) => ({
        name: one.kind in TITLES ? text[TITLES[one.kind as keyof typeof TITLES]] : one.kind,
        at: new Map(one.buckets.map((bucket) => [bucket.bucket, bucket])),
      }));
    const places = Array.from({ length: buckets }, (_, bucket) => bucket);
    return {
      throughput: named.map(({ name, at }) => ({ name, values: places.map((one) => at.get(one)?.ended ?? 0) })),
      times: named.map(({ name, at }) => ({ name, values: places.map((one) => at.get(one)?.p95Ms ?? null) })),
    };
  }, [ended, buckets, text]);
  const behind = useMemo(
    () =>
      lags.map(({ name, seconds }) => ({
        name,
        values: seconds.map((one) => (one === null ? null : one * 1_000)),
      })),
    [lags],
  );
  const range = useMemo(() => [Date.parse(from), Date.parse(to)] as const, [from, to]);
  const shared = { x, range, xTitle: text.atTime, syncKey: SYNC, height: HEIGHT_PX, axisPx };
  return (
    <Panel>
      <div className={styles.plots}>
        <Plot {...shared} label={text.throughput} lines={lines.throughput} />
        <Plot {...shared} label={text.timeToEnd} lines={lines.times} valueText={durationText} />
        {behind.length > 0 && <Plot {...shared} label={text.behind} lines={behind} valueText={durationText} />}
      </div>
    </Panel>
  );
}
