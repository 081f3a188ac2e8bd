/** The slices of a plan with their state, their counts and why they are not complete. */
import { Link } from "@tanstack/react-router";
import { onEndOf, useLiveList } from "../../api/live.ts";
import { Select } from "../../parts/controls/Select.tsx";
import { type Column, DataList } from "../../parts/page/DataList.tsx";
import { Loaded, Panel } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Elapsed } from "../../parts/times/Elapsed.tsx";
import { type Formats, useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { type Listed, type PlanDetail, paths, type Slice, type SliceStatus } from "../api.ts";
import styles from "../harvest.module.css";
import { planWords } from "../plan-words.ts";
import { SLICE_STATES, sliceState } from "../states.ts";
import { WindowText } from "../WindowText.tsx";
import { estimateText, partText } from "./sizes.ts";

const PAGE = 200;
const STATUSES = [
  "FAILED",
  "INCOMPLETE",
  "READY",
  "COMPLETE",
  "SPLIT",
  "CANCELLED",
] as const satisfies readonly SliceStatus[];

/** What somebody looks for in a plan that is not complete. */
const FAILED = ["FAILED", "INCOMPLETE"] as const satisfies readonly SliceStatus[];

interface SliceListProps {
  planId: string;
  /** How many slices are in each state. */
  counts: PlanDetail["slices"] | undefined;
  status: string | undefined;
  selected: number | undefined;
  onStatus(status: string | undefined): void;
  onOpen(sliceId: number): void;
}

export function SliceList({ planId, counts, status, selected, onStatus, onOpen }: SliceListProps) {
  const text = useWords(planWords);
  const shared = useWords(common);
  const formats = useFormats();
  const result = useLiveList<Listed<Slice, number>>(
    (after) => paths.slices(planId, { status, after, limit: PAGE }),
    ({ next }) => (next === null ? null : String(next)),
    [{ kind: "plan", id: planId }],
  );
  return (
    <Panel
      title={text.slices}
      aside={
        <>
          {status === undefined &&
            FAILED.map((one) => <FailedLink key={one} planId={planId} status={one} count={counts?.[one] ?? 0} />)}
          <Select
            label={shared.state}
            isLabelHidden
            value={status ?? ""}
            options={[["", text.allStates], ...STATUSES.map((one) => [one, text[one]] as const)]}
            onChange={(next) => onStatus(next || undefined)}
          />
        </>
      }
    >
      <Loaded result={result}>
        {(pages) => (
          <DataList
            label={text.slices}
            rows={pages.flatMap(({ items }) => items)}
            columns={columnsOf(text, shared, formats, selected !== undefined)}
            keyOf={({ sliceId }) => String(sliceId)}
            live={result.live}
            selected={selected === undefined ? undefined : String(selected)}
            onOpen={({ sliceId }) => onOpen(sliceId)}
            onEnd={onEndOf(result)}
            empty={text.noSlices}
            {...(status !== undefined && { onClear: () => onStatus(undefined) })}
          />
        )}
      </Loaded>
    </Panel>
  );
}

/** The list is in the order of time, so a failed slice may be far down. */
function FailedLink({ planId, status, count }: { planId: string; status: (typeof FAILED)[number]; count: number }) {
  const text = useWords(planWords);
  const { number } = useFormats();
  if (count === 0) return null;
  return (
    <Link to="/harvest/plans/$planId" params={{ planId }} search={{ status }} replace>
      <StateMark state={SLICE_STATES[status]} label={text.showOnly(number(count), text[status])} />
    </Link>
  );
}

export function sliceWord(text: (typeof planWords)["en"], slice: Slice): string {
  if (slice.accepted !== null) return text.accepted;
  return slice.status === "READY" && slice.batches > 0 ? text.begun : text[slice.status];
}

function columnsOf(
  text: (typeof planWords)["en"],
  shared: (typeof common)["en"],
  { number }: Formats,
  isNarrow: boolean,
): readonly Column<Slice>[] {
  const columns: readonly (Column<Slice> & { isExtra?: boolean })[] = [
    { name: "number", title: text.number, width: "44px", align: "end", cell: (slice) => slice.number },
    // What commands take.
    { name: "id", title: text.id, width: "64px", align: "end", cell: ({ sliceId }) => sliceId },
    {
      name: "state",
      title: shared.state,
      width: "112px",
      cell: (slice) => <StateMark state={sliceState(slice)} label={sliceWord(text, slice)} />,
    },
    {
      name: "window",
      title: text.window,
      width: "minmax(176px, 1fr)",
      cell: ({ window, part }) => (
        <>
          {(window !== null || part === null) && <WindowText window={window} />}{" "}
          {part && <span className={styles.soft}>{partText(text, part)}</span>}
        </>
      ),
    },
    {
      name: "records",
      title: text.records,
      width: "minmax(90px, 130px)",
      align: "end",
      wideOnly: true,
      cell: ({ received, expected, estimate, endedAt }) => {
        if (expected !== null) return text.recordsOf(number(received), number(expected));
        return estimate === null || endedAt !== null
          ? number(received)
          : text.recordsOf(number(received), estimateText(text, number, estimate));
      },
    },
    {
      isExtra: true,
      name: "pages",
      title: text.pages,
      width: "52px",
      align: "end",
      wideOnly: true,
      cell: ({ batches }) => number(batches),
    },
    {
      isExtra: true,
      name: "starts",
      title: text.restarts,
      width: "52px",
      align: "end",
      wideOnly: true,
      cell: ({ generation }) => generation,
    },
    {
      isExtra: true,
      name: "took",
      title: shared.duration,
      width: "76px",
      align: "end",
      wideOnly: true,
      cell: ({ createdAt, endedAt }) => <Elapsed from={createdAt} to={endedAt} />,
    },
    {
      name: "reason",
      title: shared.reason,
      width: "minmax(100px, 4fr)",
      wideOnly: true,
      cell: ({ reason, status }) => (
        <span className={status === "SPLIT" ? styles.soft : styles.reason} title={reason ?? undefined}>
          {reason}
        </span>
      ),
    },
  ];
  // Beside the drawer there is room for what tells slices apart.
  return columns.filter(({ isExtra }) => !(isExtra && isNarrow));
}
