/** The states of arrivals, models, runs and deliveries as the six states of the console, in one place. */
import { useMemo } from "react";
import type { Look } from "../parts/charts/heat-map.ts";
import type { State } from "../parts/states/state.ts";
import { useWords } from "../words/words.ts";
import type { DeliveryStatus, Run } from "./api.ts";
import { arrivals } from "./words.ts";

export const RUN_STATES = { SUCCESS: "success", FAILED: "failed", RUNNING: "running" } as const satisfies Record<
  Run["status"],
  State
>;

export const DELIVERY_STATES = {
  DELIVERED: "success",
  FAILED: "failed",
  SENDING: "running",
  PENDING: "waiting",
  CANCELLED: "stopped",
} as const satisfies Record<DeliveryStatus, State>;

/** The state of a model for an opTime, by the state of its instance and its last run. */
export function modelState(state: string, last: Run["status"] | null): State {
  if (["running", "parked", "returned"].includes(state)) return "running";
  if (state !== "idle") return "waiting";
  return last === null ? "skipped" : RUN_STATES[last];
}

/** The same in words. */
export function modelWord(text: (typeof arrivals)["en"], state: string, last: Run["status"] | null): string {
  switch (state) {
    case "waiting":
      return text.waitsForTables;
    case "quiet":
      return text.quiet;
    case "asking":
      return text.asking;
    case "retrying":
      return text.retried;
    case "ready":
      return text.queued;
    case "idle":
      return last === null ? text.notRun : last === "FAILED" ? text.failed : text.succeeded;
    default:
      return text.runs;
  }
}

/** The most urgent first. */
export function useLooks(by: "table" | "model"): readonly Look[] {
  const text = useWords(arrivals);
  return useMemo<readonly Look[]>(
    () =>
      by === "table"
        ? [
            { code: "-", state: "waiting", word: text.notArrived },
            { code: "m", state: "success", word: text.arrivedAgain, glyph: "↻" },
            { code: "a", state: "success", word: text.arrived },
            { code: ".", state: "none", word: text.nothing },
          ]
        : [
            { code: "f", state: "failed", word: text.failed },
            { code: "a", state: "stopped", word: text.asking, glyph: "?" },
            { code: "w", state: "waiting", word: text.waitsForTables },
            { code: "q", state: "waiting", word: text.quiet, glyph: "◔" },
            { code: "t", state: "waiting", word: text.retried, glyph: "↻" },
            { code: "p", state: "running", word: text.queued, glyph: "○" },
            { code: "r", state: "running", word: text.runs },
            { code: "s", state: "success", word: text.succeeded },
            { code: "n", state: "skipped", word: text.notRun },
            { code: ".", state: "none", word: text.nothing },
          ],
    [by, text],
  );
}

/** A table that has arrived before is missing where it has not; before its first arrival there is nothing to expect. */
export function withGaps(cells: string): string {
  const first = cells.search(/[am]/);
  return first < 0 ? cells : cells.slice(0, first) + cells.slice(first).replaceAll(".", "-");
}
