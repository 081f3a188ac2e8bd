/** The values of KPIs over opTimes, with one cursor for all of them. */
import { useMemo } from "react";
import { useLive } from "../api/live.ts";
import { Plot } from "../parts/charts/Plot.tsx";
import { Empty, Loaded } from "../parts/page/Page.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, type SeriesReply } from "./api.ts";
import styles from "./arrivals.module.css";
import { arrivals } from "./words.ts";

interface KpiPlotsProps {
  of: { modelId: string } | { kpiId: string };
  opTimes: readonly string[];
  /** The columns in view of the heat map above. */
  view?: { from: number; to: number; labelPx: number } | undefined;
  onPick?(modelId: string, opTime: string): void;
}

export function KpiPlots({ of, opTimes: all, view, onPick }: KpiPlotsProps) {
  const text = useWords(arrivals);
  const [from, to] = [all[0], all.at(-1)];
  const path = from === undefined || to === undefined ? undefined : paths.series({ ...of, from, to });
  const result = useLive<SeriesReply>(path, [{ kind: "kpi" }]);
  // Under a heat map the columns are the same; alone, the axis begins where values do.
  const isAlone = view === undefined;
  const opTimes = useMemo(
    () => (isAlone && result.data ? fromFirstValue(all, result.data) : all),
    [all, isAlone, result.data],
  );
  return (
    <Loaded result={result}>
      {({ kpis, moreKpis }) => (
        <>
          {kpis.length === 0 && <Empty>{text.noKpis}</Empty>}
          {kpis.map((kpi) => (
            <KpiPlot key={kpi.kpiId} kpi={kpi} opTimes={opTimes} view={view} onPick={onPick} />
          ))}
          {moreKpis > 0 && <p className={`${styles.soft} ${styles.padded}`}>{text.moreKpis(moreKpis)}</p>}
        </>
      )}
    </Loaded>
  );
}

function fromFirstValue(opTimes: readonly string[], { kpis }: SeriesReply): readonly string[] {
  const known = new Set(kpis.flatMap(({ lines }) => lines.flatMap((line) => line.opTimes)));
  const first = opTimes.findIndex((opTime) => known.has(opTime));
  return first < 0 ? opTimes : opTimes.slice(first);
}

type KpiPlotProps = Pick<KpiPlotsProps, "opTimes" | "view" | "onPick"> & { kpi: SeriesReply["kpis"][number] };

function KpiPlot({ kpi, opTimes, view, onPick }: KpiPlotProps) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const lines = useMemo(
    () =>
      kpi.lines.map((line) => {
        const values = new Map(line.opTimes.map((opTime, index) => [opTime, line.values[index] ?? null]));
        return {
          name: Object.values(line.dimensions).join(" · ") || kpi.kpiId,
          values: opTimes.map((opTime) => values.get(opTime) ?? null),
        };
      }),
    [kpi, opTimes],
  );
  const { modelId } = kpi;
  const more = kpi.moreLines > 0 ? ` (${shared.more(kpi.moreLines)})` : "";
  return (
    <Plot
      label={`${kpi.kpiId} ${kpi.name === kpi.kpiId ? "" : kpi.name}${more}`.trim()}
      x={opTimes}
      xTitle={text.opTime}
      lines={lines}
      height={150}
      syncKey="kpis"
      {...(view && { range: [view.from, view.to] as const, axisPx: view.labelPx })}
      onPick={modelId === null || !onPick ? undefined : (index) => onPick(modelId, opTimes[index] ?? "")}
    />
  );
}
