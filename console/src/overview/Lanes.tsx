/**
 * Finished work over time: one lane per chain, model, source and receiver, on a shared time axis. The server counts finished
 * items in buckets. A cell opens its newest failure, or its lane if there is none; dragging selects a time range.
 */
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, memo, type PointerEvent, useRef, useState } from "react";
import { GoTo } from "../parts/controls/GoTo.tsx";
import { Empty } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { GLYPHS } from "../parts/states/state.ts";
import { useFormats } from "../parts/times/time.ts";
import { useWords } from "../words/words.ts";
import type { Activity, Cell, Ended, Lane } from "./api.ts";
import styles from "./Lanes.module.css";
import { barOf, brushed, offsetIn, placeOf, ticksOf, timesOf } from "./lanes.ts";
import { cellHref, LIST_PAGES, laneHref } from "./targets.ts";
import { overview } from "./words.ts";

/** In the order in which data flows. */
const KINDS = ["plan", "run", "model", "delivery"];
const DAY_MS = 86_400_000;
const DRAG_MIN = 0.01;

export function Lanes({ activity }: { activity: Activity }) {
  const text = useWords(overview);
  const [hint, setHint] = useState<string>();
  const { brush, ...brushing } = useBrush(activity);
  const clock = useClock(activity);
  const { time } = useFormats();
  const kinds = KINDS.flatMap((kind) => activity.ended.filter((one) => one.kind === kind && one.lanes.length > 0));
  if (kinds.length === 0)
    return <Empty>{activity.hidden.length === 0 ? text.nothingEnded : text.nothingSeenEnded}</Empty>;
  return (
    <div
      className={styles.chart}
      {...brushing}
      onPointerOver={({ target }) => setHint(hintOf(target))}
      onPointerLeave={() => setHint(undefined)}
      onFocus={({ target }) => setHint(hintOf(target))}
    >
      {kinds.map((ended) => (
        <Kind key={ended.kind} ended={ended} activity={activity} />
      ))}
      <div className={styles.lane} aria-hidden="true">
        <span />
        <div className={styles.axis} data-track>
          {ticksOf(activity, offsetIn(time)).map(({ atMs, share }) => (
            <span key={atMs} style={{ left: `${share * 100}%` }}>
              {clock(atMs)}
            </span>
          ))}
          {brush && (
            <span
              className={styles.brush}
              style={{
                left: `${Math.min(...brush) * 100}%`,
                width: `${Math.abs(brush[1] - brush[0]) * 100}%`,
              }}
            />
          )}
        </div>
      </div>
      <p className={styles.hint}>{hint ?? text.lanesKeys}</p>
    </div>
  );
}

function hintOf(target: EventTarget): string | undefined {
  return target instanceof Element
    ? (target.closest("[role=gridcell]")?.getAttribute("aria-label") ?? undefined)
    : undefined;
}

/** A time as the axis writes it: with the day if there are several. */
function useClock({ from, to }: Activity): (atMs: number) => string {
  const { time } = useFormats();
  const isLong = Date.parse(to) - Date.parse(from) > 1.5 * DAY_MS;
  return (atMs) => time(atMs).slice(isLong ? 5 : 11, 16);
}

function useBrush(activity: Activity) {
  const navigate = useNavigate();
  const from = useRef<number>(undefined);
  const [brush, setBrush] = useState<readonly [number, number]>();
  const shareAt = (event: PointerEvent<HTMLElement>) => {
    const track = event.currentTarget.querySelector("[data-track]")?.getBoundingClientRect();
    return track && track.width > 0 ? (event.clientX - track.left) / track.width : undefined;
  };
  const end = () => {
    from.current = undefined;
    setBrush(undefined);
  };
  return {
    brush,
    onPointerDown(event: PointerEvent<HTMLElement>) {
      // Touch scrolls the page instead.
      const share = event.pointerType === "touch" ? undefined : shareAt(event);
      if (share !== undefined && share >= 0 && share <= 1) from.current = share;
    },
    onPointerMove(event: PointerEvent<HTMLElement>) {
      const share = shareAt(event);
      if (from.current === undefined || share === undefined) return;
      if (brush === undefined && Math.abs(share - from.current) < DRAG_MIN) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      setBrush([from.current, Math.min(Math.max(share, 0), 1)]);
    },
    onPointerUp() {
      if (brush) void navigate({ to: "/", search: brushed(activity, ...brush) });
      end();
    },
    onPointerCancel: end,
  };
}

const TITLES = { run: "runs", model: "models", plan: "plans", delivery: "deliveries" } as const;

const Kind = memo(function Kind({ ended, activity }: { ended: Ended; activity: Activity }) {
  const text = useWords(overview);
  const navigate = useNavigate();
  const { time } = useFormats();
  const { kind, lanes, moreLanes, countedFrom } = ended;
  const title = kind in TITLES ? text[TITLES[kind as keyof typeof TITLES]] : kind;
  const [active, setActive] = useState({ lane: 0, cell: 0 });

  function onKey(event: KeyboardEvent<HTMLElement>): void {
    const at = placeIn(event.target);
    const lane = at && lanes[at.lane];
    if (!at || !lane) return;
    const cell = lane.cells[at.cell];
    const next = moved(lanes, at, event.key);
    if (next) {
      setActive(next);
      event.currentTarget.querySelector<HTMLElement>(`[data-cell="${next.lane} ${next.cell}"]`)?.focus();
    } else if (event.key === "Enter" && cell) {
      const href = cellHref(kind, lane.id, cell);
      if (href !== undefined) void navigate({ href });
    } else return;
    event.preventDefault();
  }

  return (
    <section className={styles.kind}>
      <h3>{title}</h3>
      <div role="grid" aria-label={title} onKeyDown={onKey}>
        {lanes.map((lane, index) => (
          <LaneRow
            key={lane.id}
            kind={kind}
            lane={lane}
            index={index}
            activity={activity}
            activeCell={active.lane === index ? Math.min(active.cell, lane.cells.length - 1) : undefined}
          />
        ))}
      </div>
      {moreLanes > 0 && (
        <p className={styles.more}>
          <GoTo href={LIST_PAGES[kind]}>{text.moreLanes(moreLanes)}</GoTo>
        </p>
      )}
      {countedFrom !== null && <p className={styles.more}>{text.countedFrom(time(countedFrom))}</p>}
    </section>
  );
});

interface Place {
  lane: number;
  cell: number;
}

function placeIn(target: EventTarget): Place | undefined {
  const [lane, cell] = (target instanceof HTMLElement ? (target.dataset["cell"] ?? "") : "").split(" ").map(Number);
  return lane === undefined || cell === undefined ? undefined : { lane, cell };
}

/** Left and right along the lane; up and down to the cell of another lane that is nearest in time. */
function moved(lanes: readonly Lane[], { lane, cell }: Place, key: string): Place | undefined {
  const cells = lanes[lane]?.cells ?? [];
  if (key === "ArrowLeft") return { lane, cell: Math.max(cell - 1, 0) };
  if (key === "ArrowRight") return { lane, cell: Math.min(cell + 1, cells.length - 1) };
  if (key === "Home") return { lane, cell: 0 };
  if (key === "End") return { lane, cell: cells.length - 1 };
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const by = key === "ArrowUp" ? -1 : 1;
  const bucket = cells[cell]?.bucket ?? 0;
  for (let other = lane + by; other >= 0 && other < lanes.length; other += by) {
    const found = nearest(lanes[other]?.cells ?? [], bucket);
    if (found !== undefined) return { lane: other, cell: found };
  }
  return { lane, cell };
}

function nearest(cells: readonly Cell[], bucket: number): number | undefined {
  const distances = cells.map((cell) => Math.abs(cell.bucket - bucket));
  return cells.length === 0 ? undefined : distances.indexOf(Math.min(...distances));
}

interface LaneRowProps {
  kind: string;
  lane: Lane;
  index: number;
  activity: Activity;
  activeCell: number | undefined;
}

const LaneRow = memo(function LaneRow({ kind, lane, index, activity, activeCell }: LaneRowProps) {
  const text = useWords(overview);
  const { number } = useFormats();
  const clock = useClock(activity);
  const navigate = useNavigate();
  const most = Math.max(...lane.cells.map(({ ended }) => ended), 0);

  function labelOf(cell: Cell): string {
    const [from, to] = timesOf(activity, cell.bucket);
    const parts = [
      text.cellText(clock(from), clock(to), number(cell.ended)),
      ...(cell.failed > 0 ? [text.cellFailed(number(cell.failed))] : []),
      ...(cell.stopped > 0 ? [text.cellStopped(number(cell.stopped))] : []),
    ];
    return `${lane.name}, ${parts.join(", ")}`;
  }

  return (
    <div role="row" className={styles.lane}>
      <span role="rowheader" className={styles.name} title={lane.name}>
        <span className={styles.clip}>
          <GoTo href={laneHref(kind, lane.id)}>{lane.name}</GoTo>
        </span>
        {lane.underWay > 0 && (
          <span className={styles.underWay}>
            <StateMark state="running" label={text.underWay(number(lane.underWay))} compact />
            <span aria-hidden="true">{number(lane.underWay)}</span>
          </span>
        )}
      </span>
      <div role="presentation" className={styles.track}>
        {lane.cells.map((cell, cellIndex) => {
          const { left, width } = placeOf(activity, cell.bucket);
          const bar = barOf(cell, most);
          return (
            <span
              key={cell.bucket}
              role="gridcell"
              aria-label={labelOf(cell)}
              tabIndex={cellIndex === activeCell ? 0 : -1}
              data-cell={`${index} ${cellIndex}`}
              data-failed={cell.failed > 0 || undefined}
              className={styles.cell}
              style={{ left: `${left * 100}%`, width: `${width * 100}%` }}
              onClick={() => {
                const href = cellHref(kind, lane.id, cell);
                if (href !== undefined) void navigate({ href });
              }}
            >
              {cell.failed > 0 && <i className={styles.mark}>{GLYPHS.failed}</i>}
              {cell.failed > 0 && <b data-part="failed" style={{ height: `${bar.failed * 100}%` }} />}
              {cell.stopped > 0 && <b data-part="stopped" style={{ height: `${bar.stopped * 100}%` }} />}
              <b data-part="success" style={{ height: `${bar.succeeded * 100}%` }} />
            </span>
          );
        })}
      </div>
    </div>
  );
});
