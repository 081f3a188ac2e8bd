/**
 * The grid itself: a column for each run, newest at the right, with its state and time above; a row for each node. Rows are
 * virtual. One cell is in the order of the tab key, and the arrow keys move it. A click opens the node of that run.
 */
import { Link, useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type MouseEvent,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { stringifySearch } from "../../app/search-values.ts";
import { GLYPHS, type State } from "../../parts/states/state.ts";
import { durationText } from "../../parts/times/durations.ts";
import { useNow } from "../../parts/times/Time.tsx";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import type { GridNode, NodeStatus, TimedRun } from "../api.ts";
import { runNameOf } from "../names.ts";
import { runWords } from "../run/words.ts";
import { NODE_STATES, RUN_STATES, tookMs } from "../states.ts";
import own from "./RunGrid.module.css";

const ROW_PX = 26;
const HEAD_PX = 124;
const BAR_PX = 28;
const AHEAD = 10;

interface GridCellsProps {
  label: string;
  /** Oldest first. */
  runs: readonly TimedRun[];
  /** Of all nodes. */
  total: number;
  /** Undefined: not loaded. */
  nodeAt(row: number): GridNode | undefined;
  runId: string | undefined;
  nodeId: string | undefined;
  /** Kept in the address when a cell is opened, so that the columns stay where they are. */
  until: string | undefined;
  onRows(first: number, last: number): void;
}

export function GridCells({ label, runs, total, nodeAt, runId, nodeId, until, onRows }: GridCellsProps) {
  const text = useWords(runWords);
  const navigate = useNavigate();
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState({ row: 0, column: runs.length - 1 });
  const virtual = useVirtualizer({
    count: total,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: AHEAD,
    paddingStart: HEAD_PX,
    scrollPaddingStart: HEAD_PX,
  });
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  const tellRows = useEffectEvent(onRows);
  useEffect(() => tellRows(first, last), [first, last]);
  const newest = runs.at(-1)?.runId;
  useLayoutEffect(() => {
    if (newest !== undefined && scroller.current) scroller.current.scrollLeft = scroller.current.scrollWidth;
  }, [newest]);
  // Another run is another page: the node that is open comes into view there again.
  const hasScrolled = useRef(false);
  useEffect(() => {
    if (hasScrolled.current || nodeId === undefined) return;
    const row = Array.from({ length: total }, (_, at) => at).find((at) => nodeAt(at)?.nodeId === nodeId);
    if (row === undefined) return;
    hasScrolled.current = true;
    virtual.scrollToIndex(row);
  });
  const longest = Math.max(1, ...runs.map((run) => tookMs(run, 0) ?? 0));

  function searchOf(node: string) {
    return { tab: "grid", node, until };
  }
  function open(event: MouseEvent, run: TimedRun, node: string): void {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    void navigate({ to: "/chains/runs/$runId", params: { runId: run.runId }, search: searchOf(node) });
  }
  function onKey(event: KeyboardEvent): void {
    const steps: Readonly<Record<string, readonly [number, number]>> = {
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      PageUp: [-20, 0],
      PageDown: [20, 0],
      Home: [-total, 0],
      End: [total, 0],
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const row = Math.min(Math.max(active.row + step[0], 0), total - 1);
    const column = Math.min(Math.max(active.column + step[1], 0), runs.length - 1);
    setActive({ row, column });
    virtual.scrollToIndex(row);
    const cell = () => scroller.current?.querySelector<HTMLElement>(`[data-place="${row}/${column}"]`);
    // At once, so that Enter after an arrow key opens the next cell; one that was out of view is there in the next frame.
    const found = cell();
    if (found) found.focus();
    else requestAnimationFrame(() => cell()?.focus());
  }

  return (
    <div ref={scroller} className={own.scroller}>
      <div
        role="grid"
        aria-label={`${label}. ${text.gridKeys}`}
        aria-rowcount={total + 1}
        aria-colcount={runs.length + 1}
        className={own.grid}
        style={{ height: virtual.getTotalSize(), "--columns": runs.length } as React.CSSProperties}
        onKeyDown={onKey}
      >
        <div role="row" aria-rowindex={1} className={own.head} style={{ height: HEAD_PX }}>
          <span role="columnheader" className={own.corner} />
          {runs.map((run, column) => (
            <RunHead
              key={run.runId}
              run={run}
              longest={longest}
              isCurrent={run.runId === runId}
              isNewVersion={isNewVersion(runs, column)}
            />
          ))}
        </div>
        {items.map(({ index, start }) => {
          const node = nodeAt(index);
          return (
            <div
              key={index}
              role="row"
              aria-rowindex={index + 2}
              className={own.row}
              data-open={(nodeId !== undefined && node?.nodeId === nodeId) || undefined}
              style={{ transform: `translateY(${start}px)`, height: ROW_PX }}
            >
              <span role="rowheader" className={own.label} title={node?.nodeId}>
                {node?.nodeId}
              </span>
              {runs.map((run, column) => (
                <Cell
                  key={run.runId}
                  // The reply has the newest run first.
                  status={node?.statuses[runs.length - 1 - column] ?? null}
                  node={node?.nodeId ?? ""}
                  run={run}
                  place={`${index}/${column}`}
                  href={`/chains/runs/${run.runId}${stringifySearch(searchOf(node?.nodeId ?? ""))}`}
                  isActive={index === active.row && column === active.column}
                  isCurrent={run.runId === runId}
                  isNewVersion={isNewVersion(runs, column)}
                  onFocus={() => setActive({ row: index, column })}
                  onOpen={open}
                />
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function isNewVersion(runs: readonly TimedRun[], column: number): boolean {
  return column > 0 && runs[column]?.chainVersion !== runs[column - 1]?.chainVersion;
}

interface RunHeadProps {
  run: TimedRun;
  /** The time of the longest run that has ended. */
  longest: number;
  isCurrent: boolean;
  isNewVersion: boolean;
}

function RunHead({ run, longest, isCurrent, isNewVersion: isNew }: RunHeadProps) {
  const text = useWords(runWords);
  const shared = useWords(common);
  const state = RUN_STATES[run.status];
  const took = tookMs(run, useNow());
  const label = [runNameOf(run), shared[state], took === undefined ? "" : durationText(took)]
    .filter(Boolean)
    .join(", ");
  return (
    <span role="columnheader" className={own.run} data-current={isCurrent || undefined} data-new={isNew || undefined}>
      {isNew && run.chainVersion !== null && (
        <small className={own.version}>{text.versionMark(run.chainVersion)}</small>
      )}
      <Link
        to="/chains/runs/$runId"
        params={{ runId: run.runId }}
        title={label}
        aria-label={label}
        tabIndex={-1}
        className={own.runLink}
        style={colourOf(state)}
      >
        <i style={{ height: 2 + Math.round(Math.min(1, (took ?? 0) / longest) * (BAR_PX - 2)) }} />
        <span aria-hidden="true">{GLYPHS[state]}</span>
        <small aria-hidden="true">{runNameOf(run).slice(-10)}</small>
      </Link>
    </span>
  );
}

function colourOf(state: State): React.CSSProperties {
  return { "--mark": `var(--${state})` } as React.CSSProperties;
}

interface CellProps {
  status: NodeStatus | null;
  node: string;
  run: TimedRun;
  place: string;
  href: string;
  isActive: boolean;
  isCurrent: boolean;
  isNewVersion: boolean;
  onFocus(): void;
  onOpen(event: MouseEvent, run: TimedRun, node: string): void;
}

function Cell({
  status,
  node,
  run,
  place,
  href,
  isActive,
  isCurrent,
  isNewVersion: isNew,
  onFocus,
  onOpen,
}: CellProps) {
  const text = useWords(runWords);
  const shared = useWords(common);
  const state = status === null ? undefined : NODE_STATES[status];
  const label = text.cellOf(node, runNameOf(run), state === undefined ? text.notInRun : shared[state]);
  return (
    <span role="gridcell" className={own.cell} data-current={isCurrent || undefined} data-new={isNew || undefined}>
      {state !== undefined && (
        <a
          href={href}
          title={label}
          aria-label={label}
          data-place={place}
          data-state={state}
          tabIndex={isActive ? 0 : -1}
          className={own.mark}
          style={colourOf(state)}
          onFocus={onFocus}
          onClick={(event) => onOpen(event, run, node)}
        >
          {GLYPHS[state]}
        </a>
      )}
    </span>
  );
}
