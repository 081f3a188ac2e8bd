/** What waits, by cause, the most first. */
import { GoTo } from "../parts/controls/GoTo.tsx";
import { Empty } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { useWords } from "../words/words.ts";
import { COUNTED_MAX, type Waiting } from "./api.ts";
import styles from "./OverviewPage.module.css";
import { waitingHref } from "./targets.ts";
import { overview } from "./words.ts";

type Text = (typeof overview)["en"];

export function WaitingList({ waiting, seesAll }: { waiting: readonly Waiting[]; seesAll: boolean }) {
  const text = useWords(overview);
  const { number } = useFormats();
  if (waiting.length === 0) return <Empty>{seesAll ? text.nothingWaits : text.nothingSeenWaits}</Empty>;
  return (
    <ul className={styles.waiting} aria-label={text.waiting}>
      {waiting.map((one) => {
        const { cause, kind, subject, about, count, oldestAt, nextAt } = one;
        const n = count >= COUNTED_MAX ? text.orMore(number(count)) : number(count);
        return (
          <li key={`${cause} ${kind} ${subject ?? ""} ${about?.id ?? ""}`}>
            <StateMark state={cause === "process" ? "failed" : cause === "paused" ? "stopped" : "waiting"} label="" />
            <span className={styles.cause} title={causeText(text, one)}>
              <GoTo href={waitingHref(one)}>{causeText(text, one)}</GoTo>
            </span>
            <span className={styles.count}>{countText(text, kind, n)}</span>
            <span className={styles.age}>
              {oldestAt !== null && (
                <span>
                  {text.oldest} <Time at={oldestAt} relative />
                </span>
              )}
              {nextAt !== null && (
                <span>
                  {text.next} <Time at={nextAt} relative due />
                </span>
              )}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function causeText(text: Text, { cause, subject }: Waiting): string {
  const name = subject ?? "";
  switch (cause) {
    case "table":
      return text.forTable(name);
    case "gate":
      return text.forGate(name);
    case "pool":
      return text.forPool(name);
    case "limit":
      return text.forLimit(name);
    case "slot":
      return subject === null ? text.forSlot : text.forSlotOf(name);
    case "process":
      return text.forProcess(name);
    case "retry":
      return subject === null ? text.forRetry : text.forRetryOf(name);
    case "quiet":
      return text.forQuiet;
    case "paused":
      return text.isPaused(name);
    case "receiver":
      return text.forReceiver(name);
    case "tenant":
      return text.forTenant(name);
    case "claim":
      return text.forClaim(name);
  }
}

const KINDS = {
  node: "node",
  run: "run",
  model: "model",
  delivery: "delivery",
  task: "task",
  schedule: "schedule",
  shard: "shard",
  event: "event",
  "lineage-task": "lineageTask",
} as const;

function countText(text: Text, kind: string, n: string): string {
  return kind in KINDS ? text[KINDS[kind as keyof typeof KINDS]](n) : n;
}
