/** One source: where its time goes, its plans, watermarks and gates, its definition, and a new plan. */
import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { useLive } from "../api/live.ts";
import { Tabs } from "../parts/controls/Tabs.tsx";
import { Failure, Page } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time } from "../parts/times/Time.tsx";
import { useWords } from "../words/words.ts";
import { type Pause, paths, type SourceSummary } from "./api.ts";
import { CheckConnection } from "./control/CheckConnection.tsx";
import { PauseButton, PausedMark, PauseList } from "./control/Pauses.tsx";
import styles from "./harvest.module.css";
import { NewPlanTab } from "./plan/NewPlanTab.tsx";
import { sourceRoute } from "./routes.ts";
import { ActivityTab } from "./source/ActivityTab.tsx";
import { CursorsTab } from "./source/CursorsTab.tsx";
import { GatesTab } from "./source/GatesTab.tsx";
import { PlansTab } from "./source/PlansTab.tsx";
import { QuarantineTab } from "./source/QuarantineTab.tsx";
import { quarantineWords } from "./source/quarantine-words.ts";
import { activePauseOf, HEALTH_STATES, healthOf, reasonOf, SUMMARY_PACE } from "./states.ts";
import { harvestWords } from "./words.ts";

/** Reading and writing YAML is only needed here. */
const DefinitionTab = lazy(async () => ({
  default: (await import("./definition/DefinitionTab.tsx")).DefinitionTab,
}));

export function SourcePage() {
  const { source } = sourceRoute.useParams();
  // Another source is another page: nothing of the last one stays.
  return <SourcePageOf key={source} source={source} />;
}

function SourcePageOf({ source }: { source: string }) {
  const text = useWords(harvestWords);
  const quarantine = useWords(quarantineWords);
  const { tab = "activity" } = sourceRoute.useSearch();
  const summary = useLive<SourceSummary>(
    paths.source(source),
    [{ kind: "source", id: source }, { kind: "plan" }, { kind: "cursor" }],
    SUMMARY_PACE,
  );
  const pauses = useLive<{ items: readonly Pause[] }>(paths.pauses(source), [{ kind: "source", id: source }]);
  const health = summary.data && healthOf(summary.data);
  return (
    <Page
      title={source}
      aside={
        activePauseOf(pauses.data?.items, source) ? (
          <PausedMark />
        ) : (
          health && <StateMark state={HEALTH_STATES[health]} label={text[health]} />
        )
      }
      actions={
        <>
          <CheckConnection source={source} />
          <PauseButton source={source} />
          <Link to="/harvest/$source" params={{ source }} search={{ tab: "plan" }} className={styles.action}>
            {text.newPlan}
          </Link>
        </>
      }
    >
      {summary.error && <Failure error={summary.error} onRetry={() => void summary.refetch()} />}
      <PauseList source={source} />
      {summary.data && <Facts summary={summary.data} />}
      <Tabs
        label={text.views}
        current={tab}
        tabs={[
          { name: "activity", title: text.activity },
          { name: "plans", title: text.plans },
          { name: "cursors", title: text.cursors, count: summary.data?.missingWindows || undefined },
          { name: "gates", title: text.gates },
          { name: "quarantine", title: quarantine.quarantine },
          { name: "definition", title: text.definition },
          { name: "plan", title: text.newPlan },
        ]}
      />
      {tab === "activity" && <ActivityTab source={source} />}
      {tab === "plans" && <PlansTab source={source} />}
      {tab === "cursors" && <CursorsTab source={source} />}
      {tab === "gates" && <GatesTab source={source} />}
      {tab === "quarantine" && <QuarantineTab source={source} />}
      {tab === "definition" && (
        <Suspense fallback={null}>
          <DefinitionTab source={source} />
        </Suspense>
      )}
      {tab === "plan" && <NewPlanTab source={source} />}
    </Page>
  );
}

function Facts({ summary }: { summary: SourceSummary }) {
  const text = useWords(harvestWords);
  const { name, source, watermark, waiting, nextAt, missingWindows, lastPlan } = summary;
  const reason = reasonOf(summary);
  const isFailure = HEALTH_STATES[healthOf(summary)] === "failed";
  return (
    <>
      {reason !== null && (
        <p className={isFailure ? styles.reason : undefined}>
          {lastPlan && isFailure ? (
            <Link to="/harvest/plans/$planId" params={{ planId: lastPlan.planId }} className={styles.reason}>
              {reason}
            </Link>
          ) : (
            reason
          )}
          {waiting && !isFailure && (
            <span className={styles.soft}>
              {" "}
              {text.goesOn} <Time at={waiting.until} relative due />
            </span>
          )}
        </p>
      )}
      <div className={styles.facts}>
        {name !== source && <span>{name}</span>}
        {watermark && (
          <span>
            {text.lag}: {watermark.lagSeconds === 0 ? text.noLag : durationText(watermark.lagSeconds * 1_000)}
          </span>
        )}
        {missingWindows > 0 && (
          <Link to="/harvest/$source" params={{ source }} search={{ tab: "cursors" }}>
            {text.missingCount(missingWindows)}
          </Link>
        )}
        <span>
          {text.nextPlan}: {nextAt === null ? text.byHand : <Time at={nextAt} relative due />}
        </span>
      </div>
    </>
  );
}
