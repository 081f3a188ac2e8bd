/** How far a source is harvested and checked, for each cursor: the time line with its gaps, and every move of the cursor. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useLive } from "../../api/live.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Split } from "../../parts/dialogs/Drawer.tsx";
import { DataList } from "../../parts/page/DataList.tsx";
import { Empty, Loaded, Panel } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { durationText } from "../../parts/times/durations.ts";
import { Time } from "../../parts/times/Time.tsx";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { type Coverage, type Cursor, type CursorEvent, paths } from "../api.ts";
import { Rewind } from "../control/Rewind.tsx";
import { Figures } from "../Figures.tsx";
import styles from "../harvest.module.css";
import { planWords } from "../plan-words.ts";
import { EVENT_STATES } from "../states.ts";
import { useSourceSearch } from "../use-search.ts";
import { useEdgeText } from "../WindowText.tsx";
import { harvestWords } from "../words.ts";
import { CoverageAxis } from "./CoverageAxis.tsx";
import { StretchDrawer } from "./StretchDrawer.tsx";

const WINDOWS = 30;
const WINDOWS_MAX = 1_000;
const EVENTS = 200;

type Named = Pick<Cursor, "namespace" | "operation">;

export function CursorsTab({ source }: { source: string }) {
  const text = useWords(harvestWords);
  const { search, set } = useSourceSearch(source);
  const { namespace, operation, slice } = search;
  const [windows, setWindows] = useState(WINDOWS);
  const result = useLive<{ items: readonly Coverage[] }>(paths.coverage(source, windows), [
    { kind: "plan" },
    { kind: "cursor" },
  ]);
  // What an update has checked is no time of the source, so it has no time line.
  const checked = useLive<{ items: readonly Cursor[] }>(paths.cursors({ source, operation: "UPDATE" }), [
    { kind: "cursor" },
  ]);
  const cursors: readonly Named[] = [...(result.data?.items ?? []), ...(checked.data?.items ?? [])];
  const current =
    cursors.find((one) => one.namespace === namespace && one.operation === (operation ?? one.operation)) ?? cursors[0];
  const covered = result.data?.items.find((one) => isSame(one, current));
  const stretch = slice === undefined ? undefined : covered?.stretches.find(({ sliceId }) => sliceId === slice);
  const choose = (one: Named, next?: number) =>
    set({ namespace: one.namespace, operation: one.operation, slice: next });
  const onHistory = (one: Named) => (isSame(one, current) ? undefined : () => choose(one));
  return (
    <Split
      drawer={
        stretch &&
        covered && (
          <StretchDrawer
            key={slice}
            source={source}
            cursor={covered}
            stretch={stretch}
            onClose={() => set({ slice: undefined })}
          />
        )
      }
    >
      <Loaded result={result}>
        {(coverage) => (
          <Loaded result={checked}>
            {(updates) => (
              <>
                {cursors.length === 0 && <Empty>{text.noCursors}</Empty>}
                {coverage.items.map((cursor) => (
                  <CursorPanel
                    key={keyOf(cursor)}
                    source={source}
                    cursor={cursor}
                    openSlice={isSame(cursor, current) ? slice : undefined}
                    onOpen={(next) => choose(cursor, next)}
                    onMore={windows < WINDOWS_MAX ? () => setWindows(Math.min(WINDOWS_MAX, windows * 4)) : undefined}
                    onHistory={onHistory(cursor)}
                  />
                ))}
                {updates.items.map((cursor) => (
                  <CheckedPanel key={keyOf(cursor)} cursor={cursor} onHistory={onHistory(cursor)} />
                ))}
                {current && <History key={keyOf(current)} source={source} cursor={current} />}
              </>
            )}
          </Loaded>
        )}
      </Loaded>
    </Split>
  );
}

function keyOf({ namespace, operation }: Named): string {
  return `${namespace} ${operation}`;
}

function isSame(one: Named, other: Named | undefined): boolean {
  return other !== undefined && keyOf(one) === keyOf(other);
}

interface CursorPanelProps {
  source: string;
  cursor: Coverage;
  openSlice: number | undefined;
  onOpen(sliceId: number): void;
  onMore: (() => void) | undefined;
  onHistory: (() => void) | undefined;
}

function CursorPanel({ source, cursor, openSlice, onOpen, onMore, onHistory }: CursorPanelProps) {
  const text = useWords(harvestWords);
  const operations = useWords(planWords);
  const edge = useEdgeText();
  const { namespace, operation, watermark, closedUntil, lagSeconds, movedAt } = cursor;
  return (
    <Panel
      title={namespace}
      aside={
        <>
          <span className={styles.soft}>{operations[operation]}</span>
          {operation === "HARVEST" && watermark !== null && (
            <Rewind source={source} namespace={namespace} operation={operation} />
          )}
          <ShowHistory onPress={onHistory} />
          {onMore && (
            <Button kind="quiet" onPress={onMore}>
              {text.showMore}
            </Button>
          )}
        </>
      }
    >
      <div className={styles.stack}>
        <Figures
          of={[
            [text.watermark, watermark === null ? text.noWatermark : edge(watermark)],
            [text.closedUntil, operation === "HARVEST" ? edge(closedUntil) : null],
            [text.lag, lagSeconds === null ? null : lagSeconds === 0 ? text.noLag : durationText(lagSeconds * 1_000)],
            [text.moved, movedAt && <Time key="moved" at={movedAt} relative />],
          ]}
        />
        <CoverageAxis cursor={cursor} openSlice={openSlice} onOpen={onOpen} />
        {cursor.cut && <p className={styles.soft}>{text.stretchesCut}</p>}
      </div>
    </Panel>
  );
}

/** The cursor of UPDATE: since when every known record was checked. */
function CheckedPanel({ cursor, onHistory }: { cursor: Cursor; onHistory: (() => void) | undefined }) {
  const text = useWords(harvestWords);
  const operations = useWords(planWords);
  const { namespace, operation, value, updatedAt } = cursor;
  return (
    <Panel
      title={namespace}
      aside={
        <>
          <span className={styles.soft}>{operations[operation]}</span>
          <ShowHistory onPress={onHistory} />
        </>
      }
    >
      <div className={styles.stack}>
        <Figures
          of={[
            [text.checkedSince, <Time key="since" at={value} />],
            [text.moved, <Time key="moved" at={updatedAt} relative />],
          ]}
        />
      </div>
    </Panel>
  );
}

function ShowHistory({ onPress }: { onPress: (() => void) | undefined }) {
  const text = useWords(harvestWords);
  return (
    onPress && (
      <Button kind="quiet" onPress={onPress}>
        {text.showHistory}
      </Button>
    )
  );
}

function History({ source, cursor: { namespace, operation } }: { source: string; cursor: Named }) {
  const text = useWords(harvestWords);
  const operations = useWords(planWords);
  const shared = useWords(common);
  const edge = useEdgeText();
  const result = useLive<{ items: readonly CursorEvent[] }>(
    paths.timeline(source, namespace, { operation, limit: EVENTS }),
    [{ kind: "cursor", id: `${source}/${namespace}` }, { kind: "plan" }],
    { atMostEveryMs: 2_000 },
  );
  return (
    <Panel title={text.historyOf(namespace, operations[operation])}>
      <Loaded result={result}>
        {({ items }) => (
          <DataList
            label={text.history}
            rows={items}
            keyOf={({ at, kind, sliceId, to }) => `${kind} ${sliceId} ${at} ${to}`}
            live={result.live}
            empty={text.noHistory}
            columns={[
              { name: "time", title: shared.time, width: "150px", cell: ({ at }) => <Time at={at} /> },
              {
                name: "kind",
                title: text.what,
                width: "110px",
                cell: ({ kind }) => <StateMark state={EVENT_STATES[kind]} label={text[`event_${kind}`]} />,
              },
              {
                name: "from",
                title: text.from,
                width: "minmax(90px, 1fr)",
                wideOnly: true,
                cell: ({ from }) => (from === null ? text.firstValue : edge(from)),
              },
              { name: "to", title: text.to, width: "minmax(90px, 1fr)", cell: ({ to }) => edge(to) },
              {
                name: "by",
                title: text.movedBy,
                width: "minmax(80px, 1fr)",
                wideOnly: true,
                cell: ({ planId, sliceId, by }) =>
                  by ??
                  (planId !== null && sliceId !== null && (
                    <Link to="/harvest/plans/$planId" params={{ planId }} search={{ slice: sliceId }}>
                      {text.sliceNo(sliceId)}
                    </Link>
                  )),
              },
              {
                name: "reason",
                title: shared.reason,
                width: "minmax(120px, 3fr)",
                wideOnly: true,
                cell: ({ reason }) => <span title={reason ?? undefined}>{reason}</span>,
              },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}
