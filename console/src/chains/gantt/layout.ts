/**
 * The times of nodes as bars on one axis: pure functions, apart from the page. The axis begins with the first start. Where
 * nothing runs for long, it is folded, so that a night between two attempts does not squash the rest.
 */
import type { State } from "../../parts/states/state.ts";
import type { RunNode, Timeline } from "../api.ts";
import { attemptState, NODE_STATES } from "../states.ts";

export interface Bar {
  /** `wait`: before the first attempt; `pause`: between attempts. The comparison of runs counts the same. */
  kind: "wait" | "pause" | "run";
  /** In milliseconds of the clock. */
  from: number;
  to: number;
  attempt: number;
  state: State;
  error: string | null;
}

export interface GanttRow {
  node: RunNode;
  bars: readonly Bar[];
  isCritical: boolean;
  waitedMs: number;
  pausedMs: number;
  ranMs: number;
}

type Earlier = Timeline["attempts"][number];

/** By their first start; those that have not started come last, in the order of the definition. */
export function rowsOf(
  nodes: readonly RunNode[],
  timeline: Timeline,
  startedAt: string | null,
  now: number,
): GanttRow[] {
  const critical = new Set(timeline.criticalPath);
  const earlier = new Map<string, Earlier[]>();
  for (const attempt of timeline.attempts) {
    const known = earlier.get(attempt.nodeId);
    if (known) known.push(attempt);
    else earlier.set(attempt.nodeId, [attempt]);
  }
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const rows = nodes.map((node): GanttRow => {
    const runs = runBars(node, earlier.get(node.nodeId) ?? [], now);
    const waits = waitBars(node, runs, readyAt(node, byId, timeOf(startedAt)), now);
    const pauses = pauseBars(node, runs, now);
    return {
      node,
      bars: [...waits, ...pauses, ...runs],
      isCritical: critical.has(node.nodeId),
      waitedMs: lengthOf(waits),
      pausedMs: lengthOf(pauses),
      ranMs: lengthOf(runs),
    };
  });
  const startOf = ({ bars }: GanttRow) => bars.find(({ kind }) => kind === "run")?.from ?? Infinity;
  const starts = new Map(rows.map((row) => [row, startOf(row)]));
  return rows.sort((one, other) => compared(starts.get(one) ?? 0, starts.get(other) ?? 0));
}

function compared(one: number, other: number): number {
  return one === other ? 0 : one - other;
}

function timeOf(time: string | null): number | undefined {
  return time === null ? undefined : Date.parse(time);
}

function lengthOf(bars: readonly Bar[]): number {
  return bars.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** One for each attempt. The last one is in the node, unless the node was set to succeeded after it had ended. */
function runBars(node: RunNode, earlier: readonly Earlier[], now: number): Bar[] {
  const bars = earlier.map(
    ({ attempt, status, error, startedAt, endedAt }): Bar => ({
      kind: "run",
      from: Date.parse(startedAt),
      to: Date.parse(endedAt),
      attempt,
      state: attemptState(status),
      error,
    }),
  );
  const from = timeOf(node.startedAt);
  if (from !== undefined && !earlier.some(({ attempt }) => attempt === node.attempt)) {
    const to = Math.max(from, timeOf(node.endedAt) ?? now);
    bars.push({ kind: "run", from, to, attempt: node.attempt, state: NODE_STATES[node.status], error: node.lastError });
  }
  return bars;
}

/** Before the first attempt, or until now if there was none. */
function waitBars(node: RunNode, runs: readonly Bar[], ready: number | undefined, now: number): Bar[] {
  const until = runs[0]?.from ?? (isToRun(node) ? now : undefined);
  return hollow("wait", ready, until, 1);
}

/** Between attempts, and after the last one until the next begins or a person has set the node to succeeded. */
function pauseBars(node: RunNode, runs: readonly Bar[], now: number): Bar[] {
  const next = isToRun(node) ? now : timeOf(node.endedAt);
  return runs.flatMap(({ to, attempt }, index) => hollow("pause", to, runs[index + 1]?.from ?? next, attempt + 1));
}

function isToRun({ status }: RunNode): boolean {
  return status === "PENDING" || status === "RETRYING";
}

function hollow(kind: "wait" | "pause", from: number | undefined, to: number | undefined, attempt: number): Bar[] {
  if (from === undefined || to === undefined || to <= from) return [];
  return [{ kind, from, to, attempt, state: "waiting", error: null }];
}

/** When its parents allowed it to run; undefined if they have not. */
function readyAt(
  { dependsOn, runWhen }: RunNode,
  byId: ReadonlyMap<string, RunNode>,
  runStart: number | undefined,
): number | undefined {
  const parents = dependsOn.map((id) => byId.get(id));
  const failed = runWhen === "one_failed" ? parents.filter((parent) => parent?.status === "FAILED") : [];
  const ends = (failed.length > 0 ? failed : parents).map((parent) => timeOf(parent?.endedAt ?? null));
  if (failed.length > 0) return Math.min(...ends.map((end) => end ?? Infinity));
  if (ends.includes(undefined)) return undefined;
  return ends.length === 0 ? runStart : Math.max(...ends.map((end) => end ?? 0));
}

export interface Gap {
  from: number;
  to: number;
}

export interface Scale {
  /** From 0, the first start, to 1. */
  at(time: number): number;
  gaps: readonly Gap[];
  /** Time since the first start. */
  ticks: readonly { at: number; ms: number }[];
}

/** Shorter gaps are drawn as they are. */
const GAP_MIN_MS = 5_000;
/** A gap is folded if it is longer than this share of the time in which something runs. */
const GAP_SHARE = 0.2;
const GAPS_MAX = 12;
/** The width of a folded gap, as a share of the axis. */
const GAP_WIDTH = 0.025;
const TICKS = 6;
/** A label further right would be cut. */
const TICK_MAX = 0.92;
const SECOND = 1_000;
const STEPS_MS = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  SECOND,
  2 * SECOND,
  5 * SECOND,
  10 * SECOND,
  20 * SECOND,
  30 * SECOND,
  60 * SECOND,
  120 * SECOND,
  300 * SECOND,
  600 * SECOND,
  1_200 * SECOND,
  1_800 * SECOND,
  3_600 * SECOND,
  7_200 * SECOND,
  14_400 * SECOND,
  21_600 * SECOND,
  43_200 * SECOND,
  86_400 * SECOND,
];

export function scaleOf(rows: readonly GanttRow[]): Scale {
  const busy = busySpans(rows);
  const [begin, end] = [busy[0]?.from ?? 0, busy.at(-1)?.to ?? 0];
  const gaps = foldedGaps(busy);
  const folded = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const drawn = Math.max(end - begin - folded, 1);
  const room = 1 - gaps.length * GAP_WIDTH;

  function at(time: number): number {
    const inside = Math.min(Math.max(time, begin), end);
    let position = ((inside - begin) / drawn) * room;
    for (const { from, to } of gaps) {
      if (inside <= from) break;
      const covered = Math.min(inside, to) - from;
      position += (covered / (to - from)) * GAP_WIDTH - (covered / drawn) * room;
    }
    return Math.min(Math.max(position, 0), 1);
  }
  return { at, gaps, ticks: ticksOf(begin, end, gaps, drawn, at) };
}

/** When at least one node ran, merged and in order. */
function busySpans(rows: readonly GanttRow[]): Gap[] {
  const runs = rows.flatMap(({ bars }) => bars.filter(({ kind }) => kind === "run"));
  const spans: Gap[] = [];
  for (const { from, to } of runs.sort((one, other) => one.from - other.from)) {
    const last = spans.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else spans.push({ from, to });
  }
  return spans;
}

function foldedGaps(busy: readonly Gap[]): Gap[] {
  const ran = busy.reduce((sum, { from, to }) => sum + to - from, 0);
  const least = Math.max(GAP_MIN_MS, GAP_SHARE * ran);
  return busy
    .slice(1)
    .map(({ from }, index) => ({ from: busy[index]?.to ?? from, to: from }))
    .filter(({ from, to }) => to - from > least)
    .sort((one, other) => other.to - other.from - (one.to - one.from))
    .slice(0, GAPS_MAX)
    .sort((one, other) => one.from - other.from);
}

function ticksOf(begin: number, end: number, gaps: readonly Gap[], drawn: number, at: Scale["at"]): Scale["ticks"] {
  const step = STEPS_MS.find((one) => drawn / one <= TICKS) ?? drawn;
  const ticks: { at: number; ms: number }[] = [];
  const bounds = [begin, ...gaps.flatMap(({ from, to }) => [from, to]), end];
  for (let index = 0; index + 1 < bounds.length; index += 2) {
    const [from = 0, to = 0] = [bounds[index], bounds[index + 1]];
    for (let ms = Math.ceil((from - begin) / step) * step; begin + ms <= to; ms += step) {
      const position = at(begin + ms);
      const last = ticks.at(-1);
      // Labels would lie over each other behind a fold.
      if (position <= TICK_MAX && (last === undefined || position - last.at > 0.5 / TICKS))
        ticks.push({ at: position, ms });
    }
  }
  return ticks;
}
