/** The four stages: what is ready, started and failed, how long the oldest waits, and how fast it goes. */
import { Link } from "@tanstack/react-router";
import { durationText } from "../parts/times/durations.ts";
import { useNow } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { useWords } from "../words/words.ts";
import type { Queues, StageQueue } from "./api.ts";
import styles from "./tracking.module.css";
import { useRates } from "./use-rates.ts";
import { tracking } from "./words.ts";

export function StageCards({ queues }: { queues: Queues }) {
  const rateOf = useRates(queues);
  return (
    <div className={styles.cards}>
      {queues.stages.map((one, index) => (
        <StageCard key={one.stage} queue={one} no={index + 1} rate={rateOf(one.stage)} />
      ))}
    </div>
  );
}

function StageCard({ queue, no, rate }: { queue: StageQueue; no: number; rate: number | undefined }) {
  const text = useWords(tracking);
  const { number } = useFormats();
  const { stage, ready, started, failed, leased, oldest_ready_at: oldest } = queue;
  const hasQueue = no > 1;
  return (
    <section className={styles.card}>
      <h2>
        <span className={styles.number}>{no}</span> {stage}
      </h2>
      <dl className={styles.figures}>
        <div>
          <dt>{text.ready}</dt>
          <dd>{hasQueue ? number(ready) : "–"}</dd>
        </div>
        <div>
          <dt>{text.started}</dt>
          <dd>{number(started)}</dd>
        </div>
        <div>
          <dt>{text.failed}</dt>
          <dd>
            {failed === 0 ? (
              0
            ) : (
              <Link to="/tracking" search={{ tab: "stuck", stage, reason: "failed" }} className={styles.bad}>
                ✕ {number(failed)}
              </Link>
            )}
          </dd>
        </div>
      </dl>
      <p className={styles.more}>
        {hasQueue ? <span>{text.leased(number(leased))}</span> : <span>{text.noQueue}</span>}
        {oldest !== undefined && <Oldest at={oldest} />}
        <span>{rate === undefined ? text.measuring : text.rate(number(Math.round(rate)))}</span>
      </p>
    </section>
  );
}

function Oldest({ at }: { at: string }) {
  const text = useWords(tracking);
  const { time } = useFormats();
  const now = useNow();
  return <span title={time(at)}>{text.oldest(durationText(now - Date.parse(at)))}</span>;
}
