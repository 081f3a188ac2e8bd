/** The first page: what needs a person, what waits and for what, what has ended over time, and how the sources fare. */
import { useNavigate } from "@tanstack/react-router";
import { DOCTOR, type Finding } from "../admin/api.ts";
import { useLive, type Watch } from "../api/live.ts";
import { useMissing, useSessionStatus } from "../app/session.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { shell } from "../app/words.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Select } from "../parts/controls/Select.tsx";
import { Empty, Failure, Loaded, Page, Panel, Skeleton } from "../parts/page/Page.tsx";
import { useFormats } from "../parts/times/time.ts";
import { useWords } from "../words/words.ts";
import { ActivityPlots } from "./ActivityPlots.tsx";
import { type Activity, type Overview, paths } from "./api.ts";
import { Lanes } from "./Lanes.tsx";
import { Needs } from "./Needs.tsx";
import styles from "./OverviewPage.module.css";
import { overviewRoute, RANGES, type RangeName } from "./routes.ts";
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
  "tenant",
];
const WATCHES: readonly Watch[] = KINDS.map((kind) => ({ kind }));
// Each reply is made of the parts of all modules.
const NOW = { atMostEveryMs: 2_000, atLeastEveryMs: 30_000 };
const OVER_TIME = {
  hour: { atMostEveryMs: 5_000, atLeastEveryMs: 60_000 },
  day: { atMostEveryMs: 10_000, atLeastEveryMs: 60_000 },
  week: { atMostEveryMs: 30_000, atLeastEveryMs: 300_000 },
};
const CHECKED = { atLeastEveryMs: 300_000 };

export function OverviewPage() {
  const text = useWords(overview);
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

/** What a key does not see would otherwise look as if it were not there. */
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
  const { time } = useFormats();
  const navigate = useNavigate();
  const [from = "", to = ""] = part?.map((at) => time(at).slice(0, 16)) ?? [];
  const isOneDay = from.slice(0, 10) === to.slice(0, 10);
  const choose = (chosen: RangeName) =>
    void navigate({ to: "/", search: chosen === "day" ? {} : { range: chosen }, replace: true });
  if (part)
    return (
      <>
        <span className={styles.label}>{`${from} – ${isOneDay ? to.slice(11) : to}`}</span>
        <Button icon="close" onPress={() => choose("day")}>
          {text.wholeRange}
        </Button>
      </>
    );
  return (
    <Select
      label={text.range}
      isLabelHidden
      value={range}
      options={[
        ["hour", text.hour],
        ["day", text.day],
        ["week", text.week],
      ]}
      onChange={choose}
    />
  );
}
