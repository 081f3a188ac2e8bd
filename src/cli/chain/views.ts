/** The three outputs of `watch`: a frame that is redrawn, a line for each change, events as JSON. */

import { clip, hasColours, print, printable } from "../common/output.ts";
import type { Run, RunNode, RunStatus } from "./api.ts";
import type { RunEvent } from "./follow.ts";
import { frame } from "./frame.ts";
import { createMonotonicTimes } from "./monotonic-times.ts";
import { countByStatus, countsInWords, durationOf, inOneLine, nodeNote } from "./run-text.ts";
import { createScreen } from "./screen.ts";

/** The present state of a run, its nodes in the order of the definition. */
export interface WatchedRun {
  readonly run: Run;
  readonly nodes: ReadonlyMap<string, RunNode>;
}

export interface View {
  /** Unchanged from the server. */
  onEvent?(event: RunEvent): void;
  onChange?(watched: WatchedRun, changed: readonly RunNode[]): void;
  onDisconnect(sentence: string): void;
  onReconnect?(): void;
  /** Called when the run has ended or watching stops. */
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

/** Changes within this time share a frame. */
const FRAME_MS_MIN = 100;
/** Updates durations when nothing else changes. */
const TICK_MS = 1_000;
/** The size of a terminal that does not report one. */
const COLUMNS = 80;
const ROWS = 24;
const ENDED: ReadonlySet<RunStatus> = new Set(["SUCCESS", "FAILED", "STOPPED"]);

export function drawnView(window: Window): View {
  const screen = createScreen((text) => void window.write(text));
  const monotonicRun = createMonotonicTimes<Run>();
  const monotonicNode = createMonotonicTimes<RunNode>();
  let watched: WatchedRun | undefined;
  let notice: string | undefined;
  let planned: NodeJS.Timeout | undefined;

  function draw(): void {
    clearTimeout(planned);
    planned = undefined;
    if (!watched) return;
    const width = window.columns || COLUMNS;
    const below = notice === undefined ? [] : [clip(notice, width)];
    const now = Date.now();
    const lines = frame({
      run: monotonicRun(watched.run.runId, watched.run, now),
      nodes: [...watched.nodes.values()].map((node) => monotonicNode(node.nodeId, node, now)),
      now,
      width,
      height: (window.rows || ROWS) - 1 - below.length, // The cursor is below the last line.
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
    onDisconnect(sentence) {
      notice = `${printable(sentence)} Trying again.`;
      draw();
    },
    onReconnect() {
      notice = undefined;
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

/** For a log file: nothing is redrawn. */
export function linesView(): View {
  const printed = new Map<string, string>();
  let watched: WatchedRun | undefined;
  let printedStatus = "";

  function printRun({ run, nodes }: WatchedRun, isEnd: boolean): void {
    if (run.status === printedStatus || isEnd !== ENDED.has(run.status)) return;
    printedStatus = run.status;
    const took = durationOf(run, Date.now());
    const time = took === "" ? "" : ` in ${took}`;
    const ended = isEnd ? `${time} (${countsInWords(countByStatus(nodes.values()))})` : "";
    print(`run ${printable(run.runId)} of ${printable(run.jobName)} ${run.status}${ended}${because(run.reason)}`);
  }

  return {
    onChange(current, changed) {
      watched = current;
      printRun(current, false);
      for (const node of changed) {
        const state = node.status === "PENDING" ? "PENDING" : `${node.status} ${node.attempt}`;
        if (state === (printed.get(node.nodeId) ?? "PENDING")) continue;
        printed.set(node.nodeId, state);
        print(nodeLine(node));
      }
    },
    onDisconnect: printDisconnect,
    close() {
      if (watched) printRun(watched, true);
    },
  };
}

/** For a script: the events of the server, unchanged. */
export function jsonView(): View {
  return { onEvent: (event) => print(JSON.stringify(event)), onDisconnect: printDisconnect };
}

function nodeLine(node: RunNode): string {
  const now = Date.now();
  const took = node.status === "RUNNING" ? "" : durationOf(node, now);
  const state = `${printable(node.nodeId)} ${node.status}${took === "" ? "" : ` ${took}`}`;
  const note = nodeNote(node, now);
  return note === "" ? state : `${state}: ${note}`;
}

function because(reason: string | null): string {
  const line = inOneLine(reason);
  return line === "" ? "" : `: ${line}`;
}

function printDisconnect(sentence: string): void {
  process.stderr.write(`${printable(sentence)} Trying again.\n`);
}
