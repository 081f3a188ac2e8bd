/** A model: its definition, and its recent runs with the reason of each. */
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { CodeText } from "../parts/page/CodeText.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { ErrorText } from "../parts/page/ErrorText.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Empty, Loaded, Page, Panel } from "../parts/page/Page.tsx";
import { Sentence } from "../parts/page/Sentence.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type CellsReply, type Model, type Paged, paths, type Run } from "./api.ts";
import styles from "./arrivals.module.css";
import { KpiPlots } from "./KpiPlots.tsx";
import { RUN_STATES } from "./states.ts";
import { startedBy } from "./WhyDrawer.tsx";
import { arrivals } from "./words.ts";

/** Of a retry that does not name its first wait. */
const FIRST_WAIT_MS = 1_000;

export function ModelPage() {
  const text = useWords(arrivals);
  const { modelId = "" } = useParams({ strict: false });
  const model = useLive<Model>(paths.model(modelId), [{ kind: "model" }]);
  const runs = useLive<Paged<Run>>(paths.runs(modelId), [{ kind: "model" }]);
  return (
    <Page
      title={modelId}
      aside={
        model.data && (
          <StateMark
            state={model.data.state === 1 ? "success" : "stopped"}
            label={model.data.state === 1 ? text.published : text.unpublished}
          />
        )
      }
      actions={
        <>
          <Link to="/arrivals" search={{ tab: "models", q: modelId }}>
            {text.modelMap}
          </Link>
          {model.data && <Publish model={model.data} />}
        </>
      }
    >
      {runs.data && <Failed modelId={modelId} runs={runs.data.items} />}
      <Panel title={text.valuesOf(modelId)}>
        <Loaded result={model}>{(one) => <Values model={one} />}</Loaded>
      </Panel>
      <Panel title={text.definition}>
        <Loaded result={model}>{(one) => <Definition model={one} />}</Loaded>
      </Panel>
      <Panel title={text.recentRuns}>
        <Loaded result={runs}>{({ items, total }) => <RunList runs={items} total={total} live={runs.live} />}</Loaded>
      </Panel>
    </Page>
  );
}

const FAILED_SHOWN = 3;

/** The opTimes whose newest run has failed, each with its error and the button that runs it again. */
function Failed({ modelId, runs }: { modelId: string; runs: readonly Run[] }) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  // The newest come first.
  const newest = runs.filter((run, index) => runs.findIndex(({ opTime }) => opTime === run.opTime) === index);
  const failed = newest.filter(({ status, retryAt }) => status === "FAILED" && retryAt === null);
  if (failed.length === 0) return null;
  return (
    <Panel title={text.failedRuns(failed.length)}>
      <div className={`${styles.padded} ${styles.list}`}>
        {failed.slice(0, FAILED_SHOWN).map((run) => (
          <div key={run.id} className={styles.item}>
            <span className={styles.pair}>
              <Link to="/arrivals" search={{ tab: "models", row: modelId, at: run.opTime }}>
                {run.opTime}
              </Link>
              <Retry modelId={modelId} opTime={run.opTime} />
            </span>
            {run.message !== null && <ErrorText>{run.message}</ErrorText>}
          </div>
        ))}
        {failed.length > FAILED_SHOWN && <p className={styles.soft}>{shared.more(failed.length - FAILED_SHOWN)}</p>}
        <p>
          <Sentence text={text.howToCorrect(modelId)} />
        </p>
      </div>
    </Panel>
  );
}

function Retry({ modelId, opTime }: { modelId: string; opTime: string }) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const why = useWhyNot("kpi:write");
  const { isPending, run } = useAction();
  const retry = () =>
    run(async () => {
      await act(paths.retry(modelId), "POST", { opTime });
      await refresh({ kind: "model" });
      return text.runStarted(modelId, opTime);
    });
  return (
    <Button icon="retry" why={why} isPending={isPending} onPress={retry}>
      {shared.retry}
    </Button>
  );
}

function Publish({ model: { modelId, state } }: { model: Model }) {
  const text = useWords(arrivals);
  const why = useWhyNot("kpi:write");
  const { isPending, run } = useAction();
  const isPublished = state === 1;
  const change = () =>
    run(async () => {
      await act(paths.publish(modelId, !isPublished), "POST");
      await refresh({ kind: "model" });
      return isPublished ? text.unpublishedNow(modelId) : text.publishedNow(modelId);
    });
  return (
    <Button icon={isPublished ? "stop" : "play"} why={why} isPending={isPending} onPress={change}>
      {isPublished ? text.unpublish : text.publish}
    </Button>
  );
}

/** Over the newest opTimes of its period, as the map of models shows them. */
function Values({ model: { modelId, grain } }: { model: Model }) {
  const text = useWords(arrivals);
  const navigate = useNavigate();
  const cells = useLive<CellsReply>(paths.cells({ by: "model", grain: grain ?? "name", limit: 1 }), [
    { kind: "model" },
  ]);
  return (
    <Loaded result={cells}>
      {({ opTimes }) =>
        opTimes.length === 0 ? (
          <Empty>{text.noValues}</Empty>
        ) : (
          <KpiPlots
            of={{ modelId }}
            opTimes={opTimes}
            onPick={(row, at) => void navigate({ to: "/arrivals", search: { tab: "models", row, at } })}
          />
        )
      }
    </Loaded>
  );
}

function Definition({ model }: { model: Model }) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  return (
    <div className={`${styles.padded} ${styles.section}`}>
      <Fields
        rows={[
          [shared.name, model.name],
          ["", model.description],
          [
            text.dependencies,
            <ul key="tables" className={styles.list}>
              {model.dependencies.map((one) => (
                <li key={`${one.table} ${one.offset}`} className={styles.pair}>
                  <b>{one.table}</b>
                  <span className={styles.soft}>
                    {[
                      one.optional && text.optional,
                      one.grain !== null && text[`each_${one.grain}`],
                      one.offset !== 0 && String(one.offset),
                      one.deadline !== null && `${text.deadline} ${one.deadline}`,
                    ]
                      .filter(Boolean)
                      .join(", ")}
                  </span>
                </li>
              ))}
            </ul>,
          ],
          [
            text.toKpi,
            <span key="kpis" className={styles.pair}>
              {model.kpis.map((kpiId) => (
                <Link key={kpiId} to="/arrivals/kpis/$kpiId" params={{ kpiId }}>
                  {kpiId}
                </Link>
              ))}
            </span>,
          ],
          [text.grain, model.grain && text[`each_${model.grain}`]],
          [text.timeZone, model.timeZone],
          [text.engine, model.engine],
          [text.chain, model.chain],
          [text.produces, model.produces],
          [text.rerun, text[`rerun_${model.rerun}`]],
          [text.timeout, durationText(model.timeoutSeconds * 1_000)],
          [
            text.retry,
            model.retry && text.retries(model.retry.maxAttempts, durationText(model.retry.backoffMs ?? FIRST_WAIT_MS)),
          ],
          [text.version, model.version],
        ]}
      />
      {model.sql !== null && <CodeText>{model.sql}</CodeText>}
    </div>
  );
}

interface RunListProps {
  runs: readonly Run[];
  total: number;
  live: string | undefined;
}

function RunList({ runs, total, live }: RunListProps) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const navigate = useNavigate();
  return (
    <DataList
      label={text.recentRuns}
      rows={runs}
      total={total}
      keyOf={({ id }) => id}
      live={live}
      empty={text.noModelRuns}
      onOpen={({ modelId, opTime }) =>
        void navigate({ to: "/arrivals", search: { tab: "models", row: modelId, at: opTime } })
      }
      columns={[
        { name: "opTime", title: text.opTime, width: "110px", cell: ({ opTime }) => opTime },
        {
          name: "state",
          title: shared.state,
          width: "110px",
          cell: ({ status, retryAt }) =>
            retryAt === null ? (
              <StateMark state={RUN_STATES[status]} />
            ) : (
              <StateMark state="waiting" label={text.retried} />
            ),
        },
        {
          name: "attempt",
          title: text.attempts,
          width: "72px",
          align: "end",
          wideOnly: true,
          cell: ({ attempt }) => attempt,
        },
        { name: "start", title: shared.time, width: "146px", cell: ({ startTime }) => <Time at={startTime} /> },
        {
          name: "duration",
          title: shared.duration,
          width: "80px",
          align: "end",
          wideOnly: true,
          cell: ({ startTime, endTime }) =>
            endTime === null ? "" : durationText(Date.parse(endTime) - Date.parse(startTime)),
        },
        {
          name: "trigger",
          title: text.trigger,
          width: "minmax(120px, 1fr)",
          wideOnly: true,
          cell: (run) => startedBy(text, run),
        },
        {
          name: "counts",
          title: text.counts,
          width: "96px",
          align: "end",
          wideOnly: true,
          cell: ({ computeCount, storageCount }) => (computeCount === null ? "" : `${computeCount} / ${storageCount}`),
        },
        {
          name: "reason",
          title: shared.reason,
          width: "minmax(120px, 2fr)",
          cell: ({ message, warnings, retryAt }) => (
            <span title={message ?? warnings.join(" ")}>
              {retryAt !== null && (
                <>
                  {text.next} <Time at={retryAt} relative due />{" "}
                </>
              )}
              <span className={styles.reason}>{message ?? warnings.join(" ")}</span>
            </span>
          ),
        },
      ]}
    />
  );
}
