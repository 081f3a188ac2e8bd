/** The three outputs of a plan that is watched: a frame that is redrawn, a line now and then, states as JSON. */
import { createScreen } from "../chain/screen.ts";
import type { Window as TerminalWindow } from "../chain/views.ts";
import { clip, hasColours, print, printable } from "../common/output.ts";
import { createProgress } from "../common/progress.ts";
import { isStopped, type PlanDetail } from "./api.ts";
import type { PlanFollower } from "./follow.ts";
import { failedLanding, failedLandingText, frame, toLandText, tookText, waitLines } from "./frame.ts";
import { nameOf, outcomeLines, shownWindow } from "./plan-text.ts";
import { createProgressMeter, type PlanProgress, progressText } from "./progress.ts";

export interface PlanView extends PlanFollower {
  /** The plan is over. */
  onEnd(plan: PlanDetail): void;
  /** Called when watching stops, also before the end. */
  close(): void;
}

/** Updates the duration when nothing else changes. */
const TICK_MS = 1_000;
/** The width of a terminal that does not report one. */
const COLUMNS = 80;

/** `params` are those of the command line, if the plan was made by it. */
export function drawnView(window: TerminalWindow, params: readonly string[] | undefined): PlanView {
  const screen = createScreen((text) => void window.write(text));
  const meter = createProgressMeter();
  let state: { plan: PlanDetail; progress: PlanProgress } | undefined;
  let notice: string | undefined;

  function draw(): void {
    if (!state) return;
    const width = window.columns || COLUMNS;
    const below = notice === undefined ? [] : [clip(notice, width)];
    screen.draw([...frame({ ...state, now: Date.now(), width, colour: hasColours() }), ...below], width);
  }
  const ticker = setInterval(draw, TICK_MS);
  window.on("resize", draw);
  function close(): void {
    clearInterval(ticker);
    window.off("resize", draw);
    screen.leave();
  }

  return {
    onPlan(plan) {
      state = { plan, progress: meter(plan, performance.now()) };
      draw();
    },
    onDisconnect(sentence) {
      // First, because a long sentence is cut.
      notice = `Trying again. ${printable(sentence)}`;
      draw();
    },
    onReconnect() {
      notice = undefined;
    },
    onEnd(plan) {
      close();
      for (const line of outcomeLines(plan, params)) window.write(`${line}\n`);
    },
    close,
  };
}

/**
 * For a log: the plan and its outcome on standard output, its progress on standard error. Why a window could not land has a line of
 * its own, once for each reason, since a window is tried for half an hour.
 */
export function linesView(params: readonly string[] | undefined): PlanView {
  const meter = createProgressMeter();
  const progress = createProgress({ isQuiet: false });
  let isNamed = false;
  const printedReasons = new Set<string | null>();
  return {
    onPlan(plan) {
      const window = shownWindow(plan.window);
      if (!isNamed) print(`plan ${printable(plan.planId)} of ${nameOf(plan)}${window === "" ? "" : `, ${window}`}`);
      isNamed = true;
      const failed = failedLanding(plan);
      if (failed && !printedReasons.has(failed.error)) {
        printedReasons.add(failed.error);
        progress.end();
        process.stderr.write(`${nameOf(plan)}: ${failedLandingText(failed)}\n`);
      }
      const parts = [
        progressText(meter(plan, performance.now())),
        ...waitLines(plan).map((wait) => wait.replace(/\.$/, "")),
        toLandText(plan),
      ].filter((part) => part !== "");
      progress.update(`${nameOf(plan)}: ${parts.join("; ")}`);
    },
    onDisconnect: printDisconnect,
    onEnd(plan) {
      progress.end();
      const state = isStopped(plan) ? "is stopped after" : `${plan.status} in`;
      print(`plan ${printable(plan.planId)} ${state} ${tookText(plan, Date.now())}`);
      for (const line of outcomeLines(plan, params)) print(line);
    },
    close: () => progress.end(),
  };
}

/** For a script: each state that differs from the last, as the server answers it. */
export function jsonView(): PlanView {
  let last = "";
  return {
    onPlan(plan) {
      const text = JSON.stringify({ event: "progress", data: plan });
      if (text !== last) print(text);
      last = text;
    },
    onDisconnect: printDisconnect,
    onEnd: ({ status, stopped }) =>
      print(JSON.stringify({ event: "end", data: { status, ...(stopped ? { stopped } : {}) } })),
    close: () => undefined,
  };
}

function printDisconnect(sentence: string): void {
  process.stderr.write(`${printable(sentence)} Trying again.\n`);
}
