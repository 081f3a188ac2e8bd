/** All sources with their health: what each waits for or why it failed stands in its row. */
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { useLive } from "../api/live.ts";
import { Filter } from "../parts/controls/Select.tsx";
import { type Column, DataList } from "../parts/page/DataList.tsx";
import { Loaded, Page } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type Pause, paths, type SourceSummary } from "./api.ts";
import { PausedMark } from "./control/Pauses.tsx";
import { controlWords } from "./control/words.ts";
import styles from "./harvest.module.css";
import { sourcesRoute } from "./routes.ts";
import { rateText } from "./source/rate-text.ts";
import { activePauseOf, HEALTH_STATES, healthOf, PLAN_STATES, reasonOf, SUMMARY_PACE } from "./states.ts";
import { harvestWords } from "./words.ts";

const SOURCES_MAX = 1_000;
/** From here on a quota is worth a word. */
const QUOTA_FULL = 0.9;

/** Reading and writing YAML is only needed here. */
const DefinitionEditor = lazy(async () => ({
  default: (await import("./definition/DefinitionEditor.tsx")).DefinitionEditor,
}));

export function SourcesPage() {
  const text = useWords(harvestWords);
  const { tab } = sourcesRoute.useSearch();
  if (tab !== "new") return <SourceList />;
  return (
    <Page title={text.addSource}>
      <Suspense fallback={null}>
        <DefinitionEditor />
      </Suspense>
    </Page>
  );
}

function SourceList() {
  const text = useWords(harvestWords);
  const shared = useWords(common);
  const { q = "" } = sourcesRoute.useSearch();
  const navigate = useNavigate();
  const result = useLive<{ items: readonly SourceSummary[]; total: number }>(
    paths.sources({ q, size: SOURCES_MAX }),
    [{ kind: "source" }, { kind: "plan" }, { kind: "cursor" }, { kind: "gate" }],
    SUMMARY_PACE,
  );
  const pauses = useLive<{ items: readonly Pause[] }>(paths.pauses(undefined), [{ kind: "source" }]);
  const filter = (value: string) => void navigate({ to: "/harvest", search: { q: value || undefined }, replace: true });
  const pauseOf = (source: string) => activePauseOf(pauses.data?.items, source);
  return (
    <Page
      title={text.harvest}
      actions={
        <Link to="/harvest" search={{ tab: "new" }} className={styles.action}>
          {text.addSource}
        </Link>
      }
    >
      <div className={styles.bar}>
        <Filter label={shared.filter} value={q} onChange={filter} />
      </div>
      <Loaded result={result}>
        {({ items, total }) => (
          <div className={styles.list}>
            <DataList
              label={text.sources}
              rows={items}
              total={total}
              columns={columnsOf(text, shared, pauseOf)}
              keyOf={({ source }) => source}
              live={result.live}
              onOpen={({ source }) => void navigate({ to: "/harvest/$source", params: { source } })}
              empty={text.noSources}
              {...(q !== "" && { onClear: () => filter("") })}
              fill
            />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function columnsOf(
  text: (typeof harvestWords)["en"],
  shared: (typeof common)["en"],
  pauseOf: (source: string) => Pause | undefined,
): readonly Column<SourceSummary>[] {
  return [
    {
      name: "state",
      title: shared.state,
      width: "136px",
      cell: (summary) => {
        if (pauseOf(summary.source)) return <PausedMark />;
        const health = healthOf(summary);
        return <StateMark state={HEALTH_STATES[health]} label={text[health]} />;
      },
    },
    {
      name: "source",
      title: text.source,
      width: "minmax(92px, 1fr)",
      cell: ({ source, name }) => (
        <Link to="/harvest/$source" params={{ source }} title={name}>
          {source}
        </Link>
      ),
    },
    {
      name: "reason",
      title: shared.reason,
      width: "minmax(160px, 4fr)",
      wideOnly: true,
      cell: (summary) => <Reason summary={summary} pause={pauseOf(summary.source)} />,
    },
    {
      name: "plan",
      title: text.lastPlan,
      width: "170px",
      wideOnly: true,
      cell: ({ lastPlan }) => lastPlan && <LastPlan plan={lastPlan} />,
    },
    {
      name: "lag",
      title: text.lag,
      width: "70px",
      align: "end",
      cell: ({ watermark }) =>
        watermark && (
          <span title={`${watermark.namespace}: ${watermark.at}`}>
            {watermark.lagSeconds === 0 ? text.noLag : durationText(watermark.lagSeconds * 1_000)}
          </span>
        ),
    },
    {
      name: "gate",
      title: text.gate,
      width: "130px",
      wideOnly: true,
      cell: (summary) => <GateState summary={summary} />,
    },
    {
      name: "next",
      title: text.nextPlan,
      width: "90px",
      wideOnly: true,
      cell: ({ nextAt }) => (nextAt === null ? text.byHand : <Time at={nextAt} relative due />),
    },
  ];
}

function Reason({ summary, pause }: { summary: SourceSummary; pause: Pause | undefined }) {
  const text = useWords(harvestWords);
  const control = useWords(controlWords);
  const reason = reasonOf(summary);
  const { missingWindows } = summary;
  const isFailure = HEALTH_STATES[healthOf(summary)] === "failed";
  if (pause) {
    const by = pause.automatic ? control.pausedByMillrace : control.pausedBy(pause.by);
    const whole = [by, pause.reason].filter(Boolean).join(": ");
    return <span title={whole}>{whole}</span>;
  }
  const whole = [missingWindows > 0 ? text.missingCount(missingWindows) : "", reason ?? ""].filter(Boolean).join(": ");
  return (
    <span className={isFailure ? styles.reason : undefined} title={whole}>
      {whole}
    </span>
  );
}

function LastPlan({ plan: { planId, status, createdAt } }: { plan: NonNullable<SourceSummary["lastPlan"]> }) {
  const text = useWords(harvestWords);
  return (
    <Link to="/harvest/plans/$planId" params={{ planId }}>
      <StateMark state={PLAN_STATES[status]} label={text[status]} /> <Time at={createdAt} relative />
    </Link>
  );
}

/** Of the gate that lets least through. */
function GateState({ summary: { source, gates } }: { summary: SourceSummary }) {
  const text = useWords(harvestWords);
  const paused = gates.find(({ cooldownUntil }) => cooldownUntil !== null);
  const spent = gates.find(({ quotaUsed }) => quotaUsed !== null && quotaUsed >= QUOTA_FULL);
  const slowest = gates.toSorted((a, b) => share(a) - share(b))[0];
  if (!slowest) return null;
  const word = paused
    ? text.gatePaused
    : spent
      ? text.gateSpent
      : share(slowest) < 1
        ? text.gateSlow(rateText(slowest.currentRatePerSec), rateText(slowest.ratePerSec))
        : text.gateOpen(rateText(slowest.ratePerSec));
  const state = paused ? "stopped" : spent || share(slowest) < 1 ? "waiting" : "success";
  return (
    <Link to="/harvest/$source" params={{ source }} search={{ tab: "gates" }}>
      <StateMark state={state} label={word} />
    </Link>
  );
}

function share({ currentRatePerSec, ratePerSec }: SourceSummary["gates"][number]): number {
  const exact = currentRatePerSec / ratePerSec;
  return exact > 0.999 ? 1 : exact;
}
