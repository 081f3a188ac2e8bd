/** What needs a person, the newest first, and what the doctor has found beyond that. */
import { Link } from "@tanstack/react-router";
import type { Finding } from "../admin/api.ts";
import type { ApiError } from "../api/client.ts";
import { useLive } from "../api/live.ts";
import { GoTo } from "../parts/controls/GoTo.tsx";
import { Empty, Failure, Skeleton } from "../parts/page/Page.tsx";
import { Sentence } from "../parts/page/Sentence.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import type { State } from "../parts/states/state.ts";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type Activity, type Need, paths } from "./api.ts";
import styles from "./OverviewPage.module.css";
import { RANGES } from "./routes.ts";
import { actionOf, hrefOf } from "./targets.ts";
import { overview } from "./words.ts";

const STATES = {
  failed: "failed",
  stuck: "failed",
  late: "waiting",
  asking: "waiting",
  disabled: "stopped",
} as const satisfies Record<Need["state"], State>;
/** Entries shown before the list is expanded. */
const SHOWN = 8;

interface NeedsProps {
  isAll: boolean;
  /** The key sees the needs of all modules. */
  seesAll: boolean;
  needs: readonly Need[];
  /** Undefined while the doctor runs. Without its findings the list must not claim that all is well. */
  findings: readonly Finding[] | undefined;
  doctorError: ApiError | null;
  /** Undefined if the range does not end now. */
  activity: Activity | undefined;
  /** The sources that are paused since they refuse access. */
  refused: ReadonlySet<string>;
}

export function Needs({ doctorError, ...props }: NeedsProps) {
  return (
    <>
      {doctorError && <Failure error={doctorError} />}
      <NeedList {...props} hasDoctor={doctorError === null} />
    </>
  );
}

function NeedList({
  needs,
  findings,
  activity,
  refused,
  isAll,
  seesAll,
  hasDoctor,
}: Omit<NeedsProps, "doctorError"> & { hasDoctor: boolean }) {
  const text = useWords(overview);
  const shared = useWords(common);
  const found = findings?.filter(({ verdict, isListed }) => verdict !== "ok" && !isListed) ?? [];
  if (needs.length + found.length === 0) {
    if (!hasDoctor) return null;
    return findings ? <NothingNeeded activity={activity} seesAll={seesAll} /> : <Skeleton />;
  }
  // Do not hide a single entry.
  const shown = isAll || needs.length <= SHOWN + 1 ? needs : needs.slice(0, SHOWN);
  return (
    <ul className={styles.needs} aria-label={text.needsYou}>
      {shown.map((need) => (
        <NeedRow
          key={`${need.state} ${need.about.kind} ${need.about.id} ${need.about.opTime ?? ""}`}
          need={need}
          refused={refused}
        />
      ))}
      {shown.length < needs.length && (
        <li>
          <span />
          <Link from="/" to="/" search={(before) => ({ ...before, needs: "all" as const })} replace>
            {shared.more(needs.length - shown.length)}
          </Link>
        </li>
      )}
      {/* Below what was there before the doctor had answered. */}
      {found.map(({ check, verdict, found: sentence, advice }) => (
        <li key={check}>
          <StateMark state={verdict === "broken" ? "failed" : "waiting"} label={check} />
          <span className={styles.reason}>
            <Sentence text={sentence} />{" "}
            <span className={styles.soft}>{advice !== undefined && <Sentence text={advice} />}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}

function NeedRow({ need, refused }: { need: Need; refused: ReadonlySet<string> }) {
  const { about, state, title, reason, count, at } = need;
  const href = hrefOf(about);
  const text = useWords(overview);
  const shared = useWords(common);
  const { number } = useFormats();
  return (
    <li>
      <StateMark state={STATES[state]} label={state === "failed" ? shared.failed : text[state]} />
      <span className={styles.reason}>
        <GoTo href={href}>
          <b>{title}</b>
        </GoTo>
        {about.opTime !== undefined && <span className={styles.label}>{about.opTime}</span>}
        {count > 1 && (
          // The opTime is that of the newest.
          <span className={styles.label}>
            {about.opTime === undefined ? text.times(number(count)) : text.others(count - 1, number(count - 1))}
          </span>
        )}
        <span>
          <Sentence text={reason} />
        </span>
      </span>
      <span className={styles.age}>{at !== null && <Time at={at} relative />}</span>
      <span className={styles.act}>
        {href !== undefined && (
          <GoTo href={href}>
            {text[actionOf(need, refused)]} <span className="visually-hidden">{title}</span>
          </GoTo>
        )}
      </span>
    </li>
  );
}

function NothingNeeded({ activity, seesAll }: Pick<NeedsProps, "activity" | "seesAll">) {
  const text = useWords(overview);
  const recent = activity && lastFailure(activity);
  // Failures from before the range that is shown.
  const { data: week } = useLive<Activity>(
    recent === undefined ? paths.activity({ hours: RANGES.week }) : undefined,
    [],
  );
  const last = recent ?? (week && lastFailure(week));
  return (
    <Empty>
      <StateMark state="success" label={seesAll ? text.nothingNeedsYou : text.nothingSeenNeedsYou} />{" "}
      {last !== undefined ? (
        <>
          {text.lastFailure} <Time at={last} relative />
        </>
      ) : (
        week?.hidden.length === 0 && text.noFailure
      )}
    </Empty>
  );
}

/** The end of the newest bucket with a failure. */
function lastFailure({ from, to, bucketMs, ended }: Activity): string | undefined {
  const buckets = ended.flatMap((one) => one.buckets).filter(({ failed }) => failed > 0);
  if (buckets.length === 0) return undefined;
  const end = Date.parse(from) + (Math.max(...buckets.map(({ bucket }) => bucket)) + 1) * bucketMs;
  return new Date(Math.min(end, Date.parse(to))).toISOString();
}
