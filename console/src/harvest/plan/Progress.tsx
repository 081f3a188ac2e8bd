/** How far a plan is: its slices by state, the reconciliation, what it waits for and where it lands. */
import { Link } from "@tanstack/react-router";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import type { PlanDetail, SliceStatus } from "../api.ts";
import styles from "../harvest.module.css";
import { planWords } from "../plan-words.ts";
import { QuarantineLink } from "../source/QuarantineLink.tsx";
import { SLICE_STATES } from "../states.ts";
import { useEdgeText, WindowText } from "../WindowText.tsx";

const ORDER = ["COMPLETE", "READY", "INCOMPLETE", "FAILED", "CANCELLED"] as const satisfies readonly SliceStatus[];

export function Progress({ plan }: { plan: PlanDetail }) {
  const text = useWords(planWords);
  const edge = useEdgeText();
  const { number } = useFormats();
  const { slices, unslicedFrom, waits } = plan;
  // A slice that was split is counted by its parts.
  const parts = ORDER.map((status) => ({ status, count: slices[status] ?? 0 })).filter(({ count }) => count > 0);
  const all = parts.reduce((sum, { count }) => sum + count, 0);
  return (
    <div className={styles.stack}>
      <div className={styles.shares} aria-hidden="true">
        {parts.map(({ status, count }) => (
          <i key={status} data-state={SLICE_STATES[status]} style={{ flexGrow: count }} />
        ))}
      </div>
      <div className={styles.legend}>
        <b>{text.progressOf(number(slices.COMPLETE ?? 0), number(all))}</b>
        {parts.map(({ status, count }) => (
          <Link key={status} to="/harvest/plans/$planId" params={{ planId: plan.planId }} search={{ status }} replace>
            <StateMark state={SLICE_STATES[status]} label={`${text[status]} ${number(count)}`} />
          </Link>
        ))}
        {unslicedFrom !== null && <span>{text.unsliced(edge(unslicedFrom), plan.operation === "BACKFILL")}</span>}
      </div>
      <Reconciliation plan={plan} />
      {waits.length > 0 && (
        <section className={styles.section}>
          <h3>{text.waitsFor}</h3>
          <ul className={styles.lines}>
            {waits.map(({ reason, tasks, until }) => (
              <li key={reason}>
                <span>{reason}</span>
                <span className={styles.soft}>
                  {tasks > 0 && text.tasksWait(number(tasks))} {until !== null && <Time at={until} relative due />}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <Divided plan={plan} />
      <Landing plan={plan} />
    </div>
  );
}

/** The slices that were divided into parts, and how far those are. */
function Divided({ plan: { planId, divided } }: { plan: PlanDetail }) {
  const text = useWords(planWords);
  const { number } = useFormats();
  if (divided.length === 0) return null;
  return (
    <section className={styles.section}>
      <h3>{text.dividedSlices}</h3>
      <ul className={styles.lines}>
        {divided.map(({ sliceId, window, expected, by, parts }) => (
          <li key={sliceId}>
            <Link to="/harvest/plans/$planId" params={{ planId }} search={{ slice: sliceId }}>
              <WindowText window={window} />
            </Link>
            <span className={styles.soft}>
              {expected !== null && text.estimateOf(number(expected), text.basisTOTAL)}{" "}
              {text.dividedInto(
                by.join(", "),
                number(parts.COMPLETE ?? 0),
                number(Object.values(parts).reduce((sum, count) => sum + count, 0)),
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What was announced, and what became of it; then what the records did. */
function Reconciliation({ plan: { source, endpoint, reconciliation: sums } }: { plan: PlanDetail }) {
  const text = useWords(planWords);
  const { number } = useFormats();
  const { expected, received, quarantined, missing } = sums;
  const notReceived = expected === null ? 0 : Math.max(0, expected - received - quarantined - missing);
  const recordCounts = [
    [text.received, received],
    [text.quarantined, quarantined],
    [text.missing, missing],
    [text.notReceived, notReceived],
  ] as const;
  const changeCounts = [
    [text.inserted, sums.inserted],
    [text.updated, sums.updated],
    [text.unchanged, sums.unchanged],
    [text.deleted, sums.deleted],
    [text.repeated, sums.repeated],
    [text.gaps, sums.gaps],
    [text.acceptedGaps, sums.acceptedGaps],
  ] as const;
  const shown = (parts: readonly (readonly [string, number])[]) =>
    parts
      .filter(([, count], index) => index === 0 || count > 0)
      .map(([name, count]) => (
        <span key={name} data-bad={(name === text.notReceived || name === text.gaps) && count > 0 ? true : undefined}>
          {name === text.quarantined ? (
            <QuarantineLink source={source} endpoint={endpoint}>
              {name} <b>{number(count)}</b>
            </QuarantineLink>
          ) : (
            <>
              {name} <b>{number(count)}</b>
            </>
          )}
        </span>
      ));
  return (
    <section className={styles.sums} aria-label={text.reconciliation}>
      <p>
        <span>
          {expected === null ? (
            text.expectedUnknown
          ) : (
            <>
              {text.expected} <b>{number(expected)}</b>
            </>
          )}
        </span>
        <span aria-hidden="true">=</span>
        {shown(recordCounts)}
      </p>
      <p>{shown(changeCounts)}</p>
    </section>
  );
}

function Landing({ plan: { landing } }: { plan: PlanDetail }) {
  const text = useWords(planWords);
  if (landing === null) return null;
  const { engine, table, windows, obstacle, grain, partial } = landing;
  const open = (windows.PENDING ?? 0) + (windows.LANDING ?? 0);
  return (
    <div className={styles.pair}>
      <b>{text.landing}</b>
      <code>{table}</code>
      {engine !== null && <span>{text.inEngine(engine)}</span>}
      {(windows.LANDED ?? 0) > 0 && <StateMark state="success" label={text.landed(windows.LANDED ?? 0)} />}
      {open > 0 && <StateMark state="waiting" label={text.landingOpen(open)} />}
      {(windows.FAILED ?? 0) > 0 && <StateMark state="failed" label={text.landingFailed(windows.FAILED ?? 0)} />}
      {obstacle !== null && <span className={styles.soft}>{obstacle}</span>}
      {partial.length > 0 && <span className={styles.soft}>{text.landedInPart(partial.join(", "), grain)}</span>}
    </div>
  );
}
