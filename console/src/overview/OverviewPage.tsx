/** The first page: what needs a person, what waits and for what, what has ended over time, and how the sources fare. */
import { useNavigate } from "@tanstack/react-router";
import { DOCTOR, type Finding } from "../admin/api.ts";
import { useLive, type Watch } from "../api/live.ts";
import { useMissing, useSessionStatus } from "../app/session.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { shell } from "../app/words.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Select } from "../parts/controls/Select.tsx";
import { Empty, Loaded, Page, Panel } from "../parts/page/Page.tsx";
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
    <Page title={useWords(shell).overview} actions={<RangeChoice range={range} isPart={isPart} />}>
      {now.data && <Hidden scopes={now.data.hidden} />}
      <Panel title={text.needsYou}>
        <Loaded result={now}>
          {({ needs, hidden }) => (
            <Needs
              needs={needs}
              seesAll={hidden.length === 0}
              findings={doctor.data?.findings ?? []}
              doctorError={doctor.error}
              activity={activity.data}
              isAll={listed === "all"}
            />
          )}
        </Loaded>
      </Panel>
      {now.data && activity.data && isUnused(now.data, activity.data) ? (
        <Panel>
          <Empty action={<code>{FIRST_COMMAND}</code>}>{text.emptySystem}</Empty>
        </Panel>
      ) : (
        <>
          <div className={styles.pair}>
            <Panel title={text.waiting}>
              <Loaded result={now}>
                {({ waiting, hidden }) => <WaitingList waiting={waiting} seesAll={hidden.length === 0} />}
              </Loaded>
            </Panel>
            <Panel title={text.sources}>
              {noSources === undefined ? (
                <Loaded result={now}>{({ sources }) => <Sources sources={sources} live={now.live} />}</Loaded>
              ) : (
                <Empty>{noSources}</Empty>
              )}
            </Panel>
          </div>
          <Panel title={text.lanes}>
            <Loaded result={activity}>{(data) => <Lanes activity={data} />}</Loaded>
          </Panel>
          <Loaded result={activity}>{(data) => <ActivityPlots activity={data} />}</Loaded>
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

function RangeChoice({ range, isPart }: { range: RangeName; isPart: boolean }) {
  const text = useWords(overview);
  const navigate = useNavigate();
  const choose = (chosen: RangeName) =>
    void navigate({ to: "/", search: chosen === "day" ? {} : { range: chosen }, replace: true });
  if (isPart)
    return (
      <Button icon="close" onPress={() => choose("day")}>
        {text.wholeRange}
      </Button>
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
