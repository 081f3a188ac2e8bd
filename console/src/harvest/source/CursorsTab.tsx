/** How far a source is harvested, for each watermark: the time line with its gaps, and every move of the watermark. */
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
import { type Coverage, type CursorEvent, paths } from "../api.ts";
import { Rewind } from "../control/Rewind.tsx";
import { Figures } from "../Figures.tsx";
import styles from "../harvest.module.css";
import { EVENT_STATES } from "../states.ts";
import { useSourceSearch } from "../use-search.ts";
import { useEdgeText } from "../WindowText.tsx";
import { harvestWords } from "../words.ts";
import { CoverageAxis } from "./CoverageAxis.tsx";
import { StretchDrawer } from "./StretchDrawer.tsx";

const WINDOWS = 30;
const WINDOWS_MAX = 1_000;
const EVENTS = 200;

export function CursorsTab({ source }: { source: string }) {
  const text = useWords(harvestWords);
  const { search, set } = useSourceSearch(source);
  const { namespace, operation, slice } = search;
  const [windows, setWindows] = useState(WINDOWS);
  const result = useLive<{ items: readonly Coverage[] }>(paths.coverage(source, windows), [
    { kind: "plan" },
    { kind: "cursor" },
  ]);
  const items = result.data?.items ?? [];
  const current =
    items.find((one) => one.namespace === namespace && one.operation === (operation ?? one.operation)) ?? items[0];
  const stretch = slice === undefined ? undefined : current?.stretches.find(({ sliceId }) => sliceId === slice);
  return (
    <Split
      drawer={
        stretch &&
        current && (
          <StretchDrawer
            key={slice}
            source={source}
            cursor={current}
            stretch={stretch}
            onClose={() => set({ slice: undefined })}
          />
        )
      }
    >
      <Loaded result={result}>
        {(data) =>
          data.items.length === 0 ? (
            <Empty>{text.noCursors}</Empty>
          ) : (
            <>
              {data.items.map((cursor) => (
                <CursorPanel
                  key={`${cursor.namespace} ${cursor.operation}`}
                  source={source}
                  cursor={cursor}
                  openSlice={cursor === current ? slice : undefined}
                  onOpen={(next) => set({ namespace: cursor.namespace, operation: cursor.operation, slice: next })}
                  onMore={windows < WINDOWS_MAX ? () => setWindows(Math.min(WINDOWS_MAX, windows * 4)) : undefined}
                />
              ))}
              {current && (
                <History key={`${current.namespace} ${current.operation}`} source={source} cursor={current} />
              )}
            </>
          )
        }
      </Loaded>
    </Split>
  );
}

interface CursorPanelProps {
  source: string;
  cursor: Coverage;
  openSlice: number | undefined;
  onOpen(sliceId: number): void;
  onMore: (() => void) | undefined;
}

function CursorPanel({ source, cursor, openSlice, onOpen, onMore }: CursorPanelProps) {
  const text = useWords(harvestWords);
  const edge = useEdgeText();
  const { namespace, operation, watermark, closedUntil, lagSeconds, movedAt } = cursor;
  return (
    <Panel
      title={namespace}
      aside={
        <>
          <span className={styles.soft}>{operation}</span>
          {operation === "HARVEST" && watermark !== null && (
            <Rewind source={source} namespace={namespace} operation={operation} />
          )}
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
            [text.closedUntil, edge(closedUntil)],
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

function History({ source, cursor: { namespace, operation } }: { source: string; cursor: Coverage }) {
  const text = useWords(harvestWords);
  const shared = useWords(common);
  const edge = useEdgeText();
  const result = useLive<{ items: readonly CursorEvent[] }>(
    paths.timeline(source, namespace, { operation, limit: EVENTS }),
    [{ kind: "cursor", id: `${source}/${namespace}` }, { kind: "plan" }],
    { atMostEveryMs: 2_000 },
  );
  return (
    <Panel title={text.historyOf(namespace)}>
      <Loaded result={result}>
        {({ items }) => (
          <DataList
            label={text.history}
            rows={items}
            keyOf={({ at, kind, sliceId, to }) => `${kind} ${sliceId} ${at} ${to}`}
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
