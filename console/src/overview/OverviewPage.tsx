/** The overview: what needs attention, what is waiting and why, activity over time, and the health of the sources. */
import { useNavigate } from "@tanstack/react-router";
import { DOCTOR, type Finding } from "../admin/api.ts";
import { useLive, type Watch } from "../api/live.ts";
import { useMissing, useSessionStatus } from "../app/session.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { shell } from "../app/words.ts";
import { harvestWords } from "../harvest/words.ts";
import { Button } from "../parts/controls/Button.tsx";
import { GoTo } from "../parts/controls/GoTo.tsx";
import { Select } from "../parts/controls/Select.tsx";
import { Empty, Failure, Loaded, Page, Panel, Skeleton } from "../parts/page/Page.tsx";
import { useNow } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { useWords } from "../words/words.ts";
import { ActivityPlots } from "./ActivityPlots.tsx";
import { type Activity, type Overview, paths } from "./api.ts";
import { Lanes } from "./Lanes.tsx";
import { instantOf, offsetIn } from "./lanes.ts";
import { Needs } from "./Needs.tsx";
import styles from "./OverviewPage.module.css";
import { type OverviewSearch, overviewRoute, RANGES, type RangeName } from "./routes.ts";
import { Sources } from "./Sources.tsx";
import { WaitingList } from "./WaitingList.tsx";
import { overview } from "./words.ts";

const FIRST_COMMAND = "millrace chain apply examples/check-file.yaml";
const KINDS = [
  "run",
  "schedule",
  "pool",
  "model",
  "arrival",
  "delivery",
  "subscription",
  "plan",
  "cursor",
  "source",
  "file",
  "dead-letter",
  "lineage-task",
  "tenant",
];
const WATCHES: readonly Watch[] = KINDS.map((kind) => ({ kind }));
// Expensive: every module contributes to the response.
const NOW = { atMostEveryMs: 2_000, atLeastEveryMs: 30_000 };
const OVER_TIME = {
  hour: { atMostEveryMs: 5_000, atLeastEveryMs: 60_000 },
  day: { atMostEveryMs: 10_000, atLeastEveryMs: 60_000 },
  week: { atMostEveryMs: 30_000, atLeastEveryMs: 300_000 },
};
const HOUR_MS = 3_600_000;
const CHECKED = { atLeastEveryMs: 300_000 };

export function OverviewPage() {
  const text = useWords(overview);
  const harvest = useWords(harvestWords);
  const { range = "day", from, to, needs: listed } = overviewRoute.useSearch();
  const isPart = from !== undefined && to !== undefined;
  const isAdmin = useMissing("admin") === undefined;
  const noSources = useWhyNot("harvest:read");
  const now = useLive<Overview>(paths.overview, WATCHES, NOW);
  const activity = useLive<Activity>(
    paths.activity(isPart ? { from, to } : { hours: RANGES[range] }),
    WATCHES,
    isPart ? { atMostEveryMs: 30_000 } : OVER_TIME[range],
  );
  const doctor = useLive<{ findings: readonly Finding[] }>(isAdmin ? DOCTOR : undefined, [], CHECKED);
  return (
    <Page
      title={useWords(shell).overview}
      actions={<RangeChoice range={range} part={isPart ? [from, to] : undefined} />}
    >
      {now.data && <Hidden scopes={now.data.hidden} />}
      {now.error && <Failure error={now.error} onRetry={() => void now.refetch()} />}
      <Panel title={text.needsYou}>
        {now.data ? (
          <Needs
            needs={now.data.needs}
            seesAll={now.data.hidden.length === 0}
            findings={isAdmin ? doctor.data?.findings : []}
            doctorError={doctor.error}
            activity={isPart ? undefined : activity.data}
            refused={new Set(now.data.sources.filter((one) => one.accessRefused).map((one) => one.source))}
            isAll={listed === "all"}
          />
        ) : (
          <Skeleton />
        )}
      </Panel>
      {now.data && activity.data && isUnused(now.data, activity.data) ? (
        <Panel>
          <Empty action={<code>{FIRST_COMMAND}</code>}>{text.emptySystem}</Empty>
        </Panel>
      ) : (
        <>
          <div className={styles.pair}>
            <Panel title={text.waiting}>
              {now.data ? (
                <WaitingList waiting={now.data.waiting} seesAll={now.data.hidden.length === 0} />
              ) : (
                <Skeleton />
              )}
            </Panel>
            <Panel title={text.sources}>
              {noSources !== undefined ? (
                <Empty>{noSources}</Empty>
              ) : now.data?.sources.length === 0 ? (
                <Empty action={<GoTo href="/harvest?tab=new">{harvest.addSource}</GoTo>}>{text.noSources}</Empty>
              ) : now.data ? (
                <Sources sources={now.data.sources} live={now.live} />
              ) : (
                <Skeleton />
              )}
            </Panel>
          </div>
          <Panel title={text.lanes}>
            <Loaded result={activity}>{(data) => <Lanes activity={data} />}</Loaded>
          </Panel>
          {activity.data && <ActivityPlots activity={activity.data} />}
        </>
      )}
    </Page>
  );
}

/** Names what the key cannot see, so that it does not look empty. */
function Hidden({ scopes }: { scopes: readonly string[] }) {
  const text = useWords(overview);
  const status = useSessionStatus();
  if (scopes.length === 0) return null;
  const isOfTenant = "session" in status && status.session.tenantId !== undefined;
  return <p className={styles.soft}>{isOfTenant ? text.tenantSees : text.keySees(scopes.join(", "))}</p>;
}

function isUnused({ needs, waiting, sources, hidden }: Overview, { ended }: Activity): boolean {
  return (
    hidden.length + needs.length + waiting.length + sources.length === 0 &&
    ended.every(({ lanes }) => lanes.length === 0)
  );
}

function RangeChoice({ range, part }: { range: RangeName; part: readonly [from: string, to: string] | undefined }) {
  const text = useWords(overview);
  const now = useNow();
  const navigate = useNavigate();
  const show = (search: OverviewSearch) => void navigate({ to: "/", search, replace: true });
  const choose = (chosen: RangeName | "custom") => {
    const ago = (hours: number) => new Date(now - hours * HOUR_MS).toISOString();
    if (chosen === "custom") show({ from: ago(RANGES[range]), to: ago(0) });
    else show(chosen === "day" ? {} : { range: chosen });
  };
  if (part) {
    const [from, to] = part;
    return (
      <>
        <TimeField label={text.from} at={from} onChange={(at) => show({ from: at, to })} />
        <TimeField label={text.to} at={to} onChange={(at) => show({ from, to: at })} />
        <Button icon="close" onPress={() => choose("day")}>
          {text.wholeRange}
        </Button>
      </>
    );
  }
  return (
    <Select
      label={text.range}
      isLabelHidden
      value={range}
      options={[
        ["hour", text.hour],
        ["day", text.day],
        ["week", text.week],
        ["custom", text.custom],
      ]}
      onChange={choose}
    />
  );
}

/** A time in the chosen zone, to the minute. It applies when the user leaves the field or presses Enter. */
function TimeField({ label, at, onChange }: { label: string; at: string; onChange(at: string): void }) {
  const { time } = useFormats();
  const shown = time(at).slice(0, 16).replace(" ", "T");
  const apply = ({ value }: HTMLInputElement) => {
    if (value === "" || value === shown) return;
    onChange(new Date(instantOf(Date.parse(`${value}Z`), offsetIn(time))).toISOString());
  };
  return (
    <input
      key={shown}
      type="datetime-local"
      className={styles.time}
      aria-label={label}
      defaultValue={shown}
      onBlur={({ currentTarget }) => apply(currentTarget)}
      onKeyDown={({ key, currentTarget }) => {
        if (key === "Enter") apply(currentTarget);
      }}
    />
  );
}
