/** The health of each source: whether it is slow, or we wait for permits, and how far behind we are. */
import { useNavigate } from "@tanstack/react-router";
import { GoTo } from "../parts/controls/GoTo.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import type { State } from "../parts/states/state.ts";
import { durationText } from "../parts/times/durations.ts";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import type { SourceHealth } from "./api.ts";
import styles from "./OverviewPage.module.css";
import { hrefOf } from "./targets.ts";
import { overview } from "./words.ts";

const STATES = {
  ok: "success",
  idle: "skipped",
  throttled: "waiting",
  slow: "running",
  failing: "failed",
} as const satisfies Record<SourceHealth["state"], State>;

export function Sources({ sources, live }: { sources: readonly SourceHealth[]; live: string | undefined }) {
  const text = useWords(overview);
  const shared = useWords(common);
  const navigate = useNavigate();
  const pageOf = ({ source }: SourceHealth) => hrefOf({ kind: "source", id: source }) ?? "/";
  return (
    <DataList
      label={text.sources}
      rows={sources}
      keyOf={({ source }) => source}
      live={live}
      onOpen={(one) => void navigate({ href: pageOf(one) })}
      columns={[
        {
          name: "source",
          title: text.source,
          width: "minmax(80px, 1fr)",
          cell: (one) => <GoTo href={pageOf(one)}>{one.source}</GoTo>,
        },
        {
          name: "state",
          title: shared.state,
          width: "96px",
          cell: ({ state }) => <StateMark state={STATES[state]} label={text[state]} />,
        },
        {
          name: "time",
          title: text.whereTimeGoes,
          width: "minmax(150px, 3fr)",
          cell: (one) => <TimeSpent of={one} />,
        },
        {
          name: "answers",
          title: text.answersIn,
          width: "76px",
          align: "end",
          wideOnly: true,
          cell: ({ answerMs, usualAnswerMs }) =>
            answerMs !== null && (
              <span title={usualAnswerMs === null ? undefined : text.slowerThan(durationText(usualAnswerMs))}>
                {durationText(answerMs)}
              </span>
            ),
        },
        {
          name: "lag",
          title: text.lag,
          width: "76px",
          align: "end",
          wideOnly: true,
          cell: ({ lagSeconds }) =>
            lagSeconds !== null && (lagSeconds === 0 ? text.noLag : durationText(lagSeconds * 1_000)),
        },
        {
          name: "success",
          title: text.lastSuccess,
          width: "92px",
          align: "end",
          wideOnly: true,
          cell: ({ lastSuccessAt }) => <Time at={lastSuccessAt} relative />,
        },
      ]}
    />
  );
}

/** A bar of the two shares, and the one that matters as a sentence. */
function TimeSpent({ of }: { of: SourceHealth }) {
  const text = useWords(overview);
  const { number } = useFormats();
  const {
    state,
    waitShare,
    answerShare,
    heldBack,
    gate,
    requests,
    failedRequests,
    answerMs,
    usualAnswerMs,
    accessRefused,
  } = of;
  if (requests === 0 && heldBack === 0 && !accessRefused) return <span className={styles.soft}>{text.noRequests}</span>;
  const [waits, answers] = [waitShare, answerShare].map((share) => `${Math.round((share ?? 0) * 100)}%`);
  const sentence = accessRefused
    ? text.accessRefused
    : state === "failing"
      ? text.failedShare(`${Math.round((failedRequests / requests) * 100)}%`)
      : heldBack > 0
        ? text.heldBack(number(heldBack), gate ?? "")
        : state === "slow"
          ? `${durationText(answerMs ?? 0)}, ${text.slowerThan(durationText(usualAnswerMs ?? 0))}`
          : state === "throttled"
            ? text.throttledBy(waits ?? "", gate ?? "")
            : text.answering(answers ?? "");
  return (
    <span className={styles.spent} title={sentence}>
      {waitShare !== null && (
        <span className={styles.bar} aria-hidden="true">
          <span data-part="wait" style={{ width: waits }} />
          <span data-part="answer" style={{ width: answers }} />
        </span>
      )}
      <span className={styles.clip}>{sentence}</span>
    </span>
  );
}
