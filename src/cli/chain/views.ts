/** The three ways to watch a run: a frame that is redrawn in place, a line for each change, the events as JSON. */

import { clip, hasColours, print, printable } from "../common/output.ts";
import type { Run, RunNode, RunStatus } from "./api.ts";
import type { RunEvent } from "./follow.ts";
import { frame } from "./frame.ts";
import { createScreen } from "./screen.ts";
import { createSteadyTimes } from "./steady.ts";
import { countByStatus, countsInWords, durationOf, inOneLine, nodeRemark } from "./words.ts";

/** A run as it is known at the moment, its nodes in the order of the definition. */
export interface WatchedRun {
  readonly run: Run;
  readonly nodes: ReadonlyMap<string, RunNode>;
}

export interface View {
  /** As the server sent it. */
  onEvent?(event: RunEvent): void;
  onChange?(watched: WatchedRun, changed: readonly RunNode[]): void;
  onAway(sentence: string): void;
  onBack?(): void;
  /** The run has ended, or is watched no longer. */
  close?(): void;
}

/** Standard output on a terminal. */
export interface Window {
  columns: number;
  rows: number;
  write(text: string): unknown;
  on(event: "resize", listener: () => void): unknown;
  off(event: "resize", listener: () => void): unknown;
}

/** Changes that come closer together share a frame. */
const FRAME_MS_MIN = 100;
/** The clocks in the frame go on when nothing else does. */
const TICK_MS = 1_000;
/** What a terminal is taken for that does not tell its size. */
const COLUMNS = 80;
const ROWS = 24;
const ENDED: ReadonlySet<RunStatus> = new Set(["SUCCESS", "FAILED", "STOPPED"]);

export function drawnView(window: Window): View {
  const screen = createScreen((text) => void window.write(text));
  const steadyRun = createSteadyTimes<Run>();
  const steadyNode = createSteadyTimes<RunNode>();
  let watched: WatchedRun | undefined;
  let away: string | undefined;
  let planned: NodeJS.Timeout | undefined;

  function draw(): void {
    clearTimeout(planned);
    planned = undefined;
    if (!watched) return;
    const width = window.columns || COLUMNS;
    const below = away === undefined ? [] : [clip(away, width)];
    const now = Date.now();
    const lines = frame({
      run: steadyRun(watched.run.runId, watched.run, now),
      nodes: [...watched.nodes.values()].map((node) => steadyNode(node.nodeId, node, now)),
      now,
      width,
      height: (window.rows || ROWS) - 1 - below.length, // The cursor stands below the last line.
      colour: hasColours(),
    });
    screen.draw([...lines, ...below], width);
  }
  const ticker = setInterval(draw, TICK_MS);
  window.on("resize", draw);

  return {
    onChange(current) {
      watched = current;
      planned ??= setTimeout(draw, FRAME_MS_MIN);
    },
    onAway(sentence) {
      away = `${printable(sentence)} Trying again.`;
      draw();
    },
    onBack() {
      away = undefined;
      draw();
    },
    close() {
      clearInterval(ticker);
      window.off("resize", draw);
      draw();
      screen.leave();
    },
  };
}

/** For a log: nothing is ever drawn over. */
export function linesView(): View {
  const told = new Map<string, string>();
  let watched: WatchedRun | undefined;
  let toldRun = "";

  function tellRun({ run, nodes }: WatchedRun, isEnd: boolean): void {
    if (run.status === toldRun || isEnd !== ENDED.has(run.status)) return;
    toldRun = run.status;
    const took = durationOf(run, Date.now());
    const time = took === "" ? "" : ` in ${took}`;
    const ended = isEnd ? `${time} (${countsInWords(countByStatus(nodes.values()))})` : "";
    print(`run ${printable(run.runId)} of ${printable(run.jobName)} ${run.status}${ended}${because(run.reason)}`);
  }

  return {
    onChange(current, changed) {
      watched = current;
      tellRun(current, false);
      for (const node of changed) {
        const state = node.status === "PENDING" ? "PENDING" : `${node.status} ${node.attempt}`;
        if (state === (told.get(node.nodeId) ?? "PENDING")) continue;
        told.set(node.nodeId, state);
        print(nodeLine(node));
      }
    },
    onAway: tellAway,
    close() {
      if (watched) tellRun(watched, true);
    },
  };
}

/** For a script: each event as the server sent it. */
export function jsonView(): View {
  return { onEvent: (event) => print(JSON.stringify(event)), onAway: tellAway };
}

function nodeLine(node: RunNode): string {
  const now = Date.now();
  const took = node.status === "RUNNING" ? "" : durationOf(node, now);
  const state = `${printable(node.nodeId)} ${node.status}${took === "" ? "" : ` ${took}`}`;
  const remark = nodeRemark(node, now);
  return remark === "" ? state : `${state}: ${remark}`;
}

function because(reason: string | null): string {
  const line = inOneLine(reason);
  return line === "" ? "" : `: ${line}`;
}

function tellAway(sentence: string): void {
  process.stderr.write(`${printable(sentence)} Trying again.\n`);
}
