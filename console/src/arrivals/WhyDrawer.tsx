/** Why a model has run for an opTime or has not: its tables, what the last run used, and the next step. */
import { Link } from "@tanstack/react-router";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Drawer } from "../parts/dialogs/Drawer.tsx";
import { ErrorText } from "../parts/page/ErrorText.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type ModelWhy, paths, type Run } from "./api.ts";
import styles from "./arrivals.module.css";
import { Deadline, Expected } from "./Expected.tsx";
import { modelState, modelWord, RUN_STATES } from "./states.ts";
import { arrivals } from "./words.ts";

interface WhyDrawerProps {
  modelId: string;
  opTime: string;
  onClose(): void;
}

export function WhyDrawer({ modelId, opTime, onClose }: WhyDrawerProps) {
  const text = useWords(arrivals);
  const result = useLive<ModelWhy>(paths.modelWhy(modelId, opTime), [{ kind: "model" }, { kind: "arrival" }]);
  const lacked = useWhyNot("kpi:write");
  const action = useAction();
  const isMissing = result.data?.tables.some(({ missing, optional }) => missing && !optional) ?? false;
  const run = () =>
    action.run(async () => {
      await act(paths.run(modelId), "POST", { opTime, force: isMissing });
      await refresh({ kind: "model" });
      return text.runStarted(modelId, opTime);
    });
  return (
    <Drawer
      title={text.why(modelId, opTime)}
      onClose={onClose}
      actions={
        <Button icon="play" isPending={action.isPending} why={lacked} onPress={() => run()}>
          {isMissing ? text.runAnyway : text.run}
        </Button>
      }
    >
      <Loaded result={result}>
        {(why) => (
          <>
            <StateMark
              state={modelState(why.state, why.runs[0]?.status ?? null)}
              label={modelWord(text, why.state, why.runs[0]?.status ?? null)}
            />
            <Verdict why={why} />
            <Tables why={why} />
            <LastUsed why={why} />
            {steps(why).length > 0 && (
              <section className={styles.section}>
                <h3>{text.nextStep}</h3>
                <ul className={styles.list}>
                  {steps(why).map((step) => (
                    <li key={step}>{step}</li>
                  ))}
                </ul>
              </section>
            )}
            {why.computed.length > 0 && (
              <section className={styles.section}>
                <h3>{text.computedMissing}</h3>
                {why.computed.map(({ kpiId, missing }) => (
                  <p key={kpiId}>
                    {kpiId}: {missing.join(" ")}
                  </p>
                ))}
              </section>
            )}
            <Runs runs={why.runs} />
            <p className={styles.pair}>
              <Link to="/arrivals/models/$modelId" params={{ modelId }}>
                {text.toModel}
              </Link>
              <Link to="/arrivals/deliveries" search={{ modelId, opTime }}>
                {text.toDeliveries}
              </Link>
            </p>
          </>
        )}
      </Loaded>
    </Drawer>
  );
}

/** The sentence of the API. The error of an engine in it may have several lines, and a mark below one of them. */
function Verdict({ why: { verdict, runs } }: { why: ModelWhy }) {
  const error = runs[0]?.message ?? "";
  const at = error.includes("\n") ? verdict.indexOf(error) : -1;
  if (at < 0) return <p className={styles.verdict}>{verdict}</p>;
  const after = verdict.slice(at + error.length).trim();
  return (
    <>
      <p className={styles.verdict}>{verdict.slice(0, at)}</p>
      <ErrorText>{error}</ErrorText>
      {after !== "" && <p className={styles.verdict}>{after}</p>}
    </>
  );
}

/** Without the calls of the API: the button above makes them. */
function steps({ wouldRun }: ModelWhy): readonly string[] {
  return wouldRun.filter((step) => !step.startsWith("POST ")).map((step) => step.replace(/ \(PUT [^)]*\)/, ""));
}

function Tables({ why }: { why: ModelWhy }) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  return (
    <section className={styles.section}>
      <h3>{text.requires}</h3>
      <ul className={styles.list}>
        {why.tables.map((one) => (
          <li key={nameOf(one)} className={styles.item}>
            <span className={styles.pair}>
              <StateMark
                state={one.missing ? "waiting" : "success"}
                label={one.missing ? text.missing : text.arrived}
              />
              <b>{nameOf(one)}</b>
              {one.optional && <span className={styles.soft}>{text.optional}</span>}
            </span>
            <span className={`${styles.soft} ${styles.pair}`}>
              {one.arrivedAt !== null && (
                <>
                  <Time at={one.arrivedAt} />
                  <span>{text.sequence(one.sequence ?? "")}</span>
                  <span>{text.by(one.announcedBy ?? shared.unknown)}</span>
                  <span>{one.consumedBy ? text.usedBy(one.consumedBy.generation) : text.notUsed}</span>
                </>
              )}
              {one.missing && one.usualAt !== null && <Expected at={one.usualAt} />}
              {one.deadline !== null && <Deadline at={one.deadline} isMissing={one.missing} />}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The sequences of the arrivals that it used, where a table has arrived again since. */
function LastUsed({ why: { runs, tables } }: { why: ModelWhy }) {
  const text = useWords(arrivals);
  const last = runs.find(({ status }) => status === "SUCCESS");
  const present = new Set(tables.filter(({ consumedBy }) => consumedBy?.taskId === last?.id).map(nameOf));
  const used = Object.entries(last?.consumed ?? {});
  if (used.every(([table]) => present.has(table))) return null;
  return (
    <section className={styles.section}>
      <h3>{text.lastUsed}</h3>
      <ul className={styles.list}>
        {used.map(([table, sequence]) => (
          <li key={table} className={styles.pair}>
            <span>{table}</span>
            <span className={styles.soft}>{text.sequence(sequence)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function nameOf({ table, opTime }: ModelWhy["tables"][number]): string {
  return `${table} ${opTime}`;
}

function Runs({ runs }: { runs: readonly Run[] }) {
  const text = useWords(arrivals);
  return (
    <section className={styles.section}>
      <h3>{text.runsOf}</h3>
      {runs.length === 0 && <p className={styles.soft}>{text.noRuns}</p>}
      <ul className={styles.list}>
        {runs.map((run) => (
          <li key={run.id} className={styles.item}>
            <span className={styles.pair}>
              <StateMark state={RUN_STATES[run.status]} />
              <span>{text.generationNo(run.generation)}</span>
              {run.attempt > 1 && <span className={styles.soft}>{text.attempt(run.attempt)}</span>}
              <Time at={run.startTime} />
              {run.endTime !== null && (
                <span className={styles.soft}>{durationText(Date.parse(run.endTime) - Date.parse(run.startTime))}</span>
              )}
              <span className={styles.soft}>{startedBy(text, run)}</span>
            </span>
            {run.message !== null && <ErrorText>{run.message}</ErrorText>}
          </li>
        ))}
      </ul>
    </section>
  );
}

export function startedBy(text: (typeof arrivals)["en"], { trigger, causedBy }: Run): string {
  const word = text[`trigger_${trigger}`];
  return causedBy ? `${word} ${causedBy.table} ${causedBy.opTime}` : word;
}
