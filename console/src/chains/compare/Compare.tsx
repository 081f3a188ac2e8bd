/** Why was this run slower than an earlier one? Node by node: what waited, ran and paused longer, what cost most first. */
import { useLive } from "../../api/live.ts";
import { Select } from "../../parts/controls/Select.tsx";
import { type Column, DataList } from "../../parts/page/DataList.tsx";
import { Empty, Loaded } from "../../parts/page/Page.tsx";
import { Sentence } from "../../parts/page/Sentence.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { durationText } from "../../parts/times/durations.ts";
import { useNow } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { type ComparedNode, type Comparison, type NodeTimes, paths } from "../api.ts";
import styles from "../chains.module.css";
import { runNameOf } from "../names.ts";
import { runWords } from "../run/words.ts";
import { NODE_STATES, RUN_STATES, tookMs } from "../states.ts";
import { chainWords } from "../words.ts";
import own from "./Compare.module.css";
import { causeText, signed, summaryText } from "./causes.ts";

interface CompareProps {
  runId: string;
  /** The run to compare with; undefined: the last successful one. */
  other: string | undefined;
  onOther(runId: string | undefined): void;
  selected: string | undefined;
  onOpen(nodeId: string): void;
}

export function Compare({ runId, other, onOther, selected, onOpen }: CompareProps) {
  const result = useLive<Comparison>(paths.comparison(runId, other), [{ kind: "run", id: runId }]);
  return (
    <Loaded result={result}>
      {(data) => (
        <>
          <Head comparison={data} other={other} onOther={onOther} />
          {data.with && <Differences comparison={data} selected={selected} onOpen={onOpen} />}
        </>
      )}
    </Loaded>
  );
}

interface HeadProps {
  comparison: Comparison;
  other: string | undefined;
  onOther(runId: string | undefined): void;
}

function Head({ comparison, other, onOther }: HeadProps) {
  const text = useWords(runWords);
  const shared = useWords(common);
  const { time } = useFormats();
  const now = useNow();
  const choices = comparison.earlier.map((run): [string, string] => [
    run.runId,
    [runNameOf(run), shared[RUN_STATES[run.status]], durationText(tookMs(run, now) ?? 0), time(run.createdAt)].join(
      " · ",
    ),
  ]);
  // A link may name any run.
  const named = comparison.with;
  if (named && other === named.runId && !choices.some(([runId]) => runId === other))
    choices.unshift([named.runId, runNameOf(named)]);
  return (
    <div className={own.head}>
      {comparison.with ? (
        // While the run goes on, its duration changes every second: no screen reader should read that out.
        <p className={own.summary} role={comparison.run.endedAt === null ? undefined : "status"}>
          <Sentence text={summaryText(comparison, now, text)} />
        </p>
      ) : (
        <Empty>{text.noEarlier}</Empty>
      )}
      {choices.length > 0 && (
        <Select
          label={text.compareWith}
          value={other ?? ""}
          options={[["", text.lastSuccess], ...choices]}
          onChange={(value) => onOther(value || undefined)}
        />
      )}
    </div>
  );
}

interface DifferencesProps {
  comparison: Comparison;
  selected: string | undefined;
  onOpen(nodeId: string): void;
}

function Differences({ comparison: { nodes, total }, selected, onOpen }: DifferencesProps) {
  const text = useWords(runWords);
  const chain = useWords(chainWords);
  const { number } = useFormats();
  const most = Math.max(1, ...nodes.map(({ differenceMs }) => Math.abs(differenceMs)));
  const hasPauses = nodes.some(({ now, before }) => Math.max(now?.pausedMs ?? 0, before?.pausedMs ?? 0) >= 1);
  return (
    <div className={styles.view}>
      <DataList
        label={text.compareTable}
        rows={nodes}
        columns={columnsOf(text, chain, most, hasPauses)}
        keyOf={({ nodeId }) => nodeId}
        selected={selected}
        onOpen={({ nodeId, now }) => now && onOpen(nodeId)}
        fill
      />
      {total > nodes.length && <p className={own.more}>{text.shownOf(number(nodes.length), number(total))}</p>}
    </div>
  );
}

function columnsOf(
  text: (typeof runWords)["en"],
  chain: (typeof chainWords)["en"],
  most: number,
  hasPauses: boolean,
): readonly Column<ComparedNode>[] {
  const times = (name: "waitedMs" | "pausedMs" | "ranMs", title: string): Column<ComparedNode> => ({
    name,
    title,
    width: "130px",
    wideOnly: true,
    align: "end",
    cell: ({ now, before }) => <Pair now={now?.[name]} before={before?.[name]} text={text} />,
  });
  return [
    {
      name: "node",
      title: chain.node,
      width: "minmax(110px, 1fr)",
      cell: ({ nodeId, critical, now, before }) => (
        <span title={nodeId}>
          <StateMark state={NODE_STATES[statusOf(now, before)]} compact />
          <b aria-hidden="true" className={own.critical}>
            {critical && "◆"}
          </b>
          {nodeId}
          {critical && <span className="visually-hidden">{text.critical}</span>}
        </span>
      ),
    },
    {
      name: "difference",
      title: text.difference,
      width: "minmax(90px, 150px)",
      align: "end",
      cell: ({ differenceMs, critical }) => (
        <span className={own.difference} data-slower={(differenceMs > 0 && critical) || undefined}>
          <i style={{ width: `${(Math.abs(differenceMs) / most) * 100}%` }} />
          <span>{signed(differenceMs)}</span>
        </span>
      ),
    },
    times("waitedMs", text.waited),
    ...(hasPauses ? [times("pausedMs", text.paused)] : []),
    times("ranMs", text.ran),
    {
      name: "why",
      title: text.why,
      width: "minmax(120px, 3fr)",
      cell: (node) => {
        const why = causeText(node, text);
        return (
          <span title={why}>
            <Sentence text={why} />
          </span>
        );
      },
    },
  ];
}

function statusOf(now: NodeTimes | null, before: NodeTimes | null) {
  return now?.status ?? before?.status ?? "PENDING";
}

interface PairProps {
  now: number | undefined;
  before: number | undefined;
  text: (typeof runWords)["en"];
}

function Pair({ now, before, text }: PairProps) {
  // Most nodes wait for nothing.
  if (Math.max(now ?? 0, before ?? 0) < 1) return null;
  return (
    <>
      {now !== undefined && durationText(now)}
      {before !== undefined && <small className={own.was}> {text.was(durationText(before))}</small>}
    </>
  );
}
