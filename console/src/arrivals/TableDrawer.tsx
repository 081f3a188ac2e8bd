/** Why a table is there for an opTime or is missing, and the models and runs that wait for it. */
import { Link } from "@tanstack/react-router";
import { useLive } from "../api/live.ts";
import { useMissing } from "../app/session.ts";
import { paths as chainPaths, type RunPage } from "../chains/api.ts";
import { RUN_STATES } from "../chains/states.ts";
import { Drawer } from "../parts/dialogs/Drawer.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, type TableWhy } from "./api.ts";
import styles from "./arrivals.module.css";
import { Deadline, Expected } from "./Expected.tsx";
import { modelState } from "./states.ts";
import { arrivals } from "./words.ts";

export function TableDrawer({ table, opTime, onClose }: { table: string; opTime: string; onClose(): void }) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const result = useLive<TableWhy>(paths.tableWhy(table, opTime), [{ kind: "arrival" }, { kind: "model" }]);
  return (
    <Drawer title={text.why(table, opTime)} onClose={onClose}>
      <Loaded result={result}>
        {({ arrival, usualAt, models, more }) => (
          <>
            {arrival ? (
              <Fields
                rows={[
                  [text.lastTime, <Time key="last" at={arrival.arrivalTime} />],
                  [text.firstTime, <Time key="first" at={arrival.firstTime} />],
                  [text.times, arrival.arrivals],
                  [text.sequenceName, arrival.sequence],
                  [text.announcedBy, arrival.announcedBy ?? shared.unknown],
                ]}
              />
            ) : (
              <p className={styles.verdict}>{text.notArrivedYet}</p>
            )}
            {usualAt !== null && !arrival && (
              <p>
                <Expected at={usualAt} />
              </p>
            )}
            <section className={styles.section}>
              <h3>{text.modelsThatNeed}</h3>
              {models.length === 0 && <p className={styles.soft}>{text.noModelNeeds}</p>}
              <ul className={styles.list}>
                {models.map((one) => (
                  <li key={`${one.modelId} ${one.opTime}`} className={styles.pair}>
                    <StateMark state={modelState(one.state, one.last)} />
                    <Link to="/arrivals" search={{ tab: "models", row: one.modelId, at: one.opTime }}>
                      {one.modelId} {one.opTime}
                    </Link>
                    {one.optional && <span className={styles.soft}>{text.optional}</span>}
                    {one.deadline !== null && (
                      <span className={styles.soft}>
                        <Deadline at={one.deadline} isMissing={arrival === null} />
                      </span>
                    )}
                  </li>
                ))}
              </ul>
              {more > 0 && <p className={styles.soft}>{shared.more(more)}</p>}
            </section>
            <WaitingRuns table={table} opTime={opTime} />
          </>
        )}
      </Loaded>
    </Drawer>
  );
}

const RUNS_LISTED = 10;

/** Chains wait for tables too. */
function WaitingRuns({ table, opTime }: { table: string; opTime: string }) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const maySee = useMissing("run:read") === undefined;
  const waitsFor = `table:${table}`;
  const { data } = useLive<RunPage>(maySee ? chainPaths.runs({ waitsFor, opTime, size: RUNS_LISTED }) : undefined, [
    { kind: "run" },
  ]);
  if (data === undefined || data.total === 0) return null;
  return (
    <section className={styles.section}>
      <h3>{text.runsThatWait}</h3>
      <ul className={styles.list}>
        {data.items.map(({ runId, jobName, status }) => (
          <li key={runId} className={styles.pair}>
            <StateMark state={RUN_STATES[status]} />
            <Link to="/chains/runs/$runId" params={{ runId }}>
              {jobName} {opTime}
            </Link>
          </li>
        ))}
      </ul>
      {data.total > data.items.length && (
        <Link to="/chains/runs" search={{ waitsFor, opTime }}>
          {shared.more(data.total - data.items.length)}
        </Link>
      )}
    </section>
  );
}
