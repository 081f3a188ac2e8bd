/** Ctrl-C and SIGTERM: the first asks for a graceful end, a second one for an immediate end. */
import { constants } from "node:os";

type StopSignal = "SIGINT" | "SIGTERM";

/**
 * One press of Ctrl-C can arrive twice: the terminal signals the whole group, and `npm start`, which is in it, forwards
 * its own copy to us.
 */
const SAME_PRESS_MS = 500;

/** The process, or what a test puts in its place. */
export interface SignalSource {
  on(signal: StopSignal, listener: (signal: StopSignal) => void): unknown;
  exit(code: number): void;
}

/** Aborted by the first signal. `atOnce` is called on a second, just before the process exits as if killed by it. */
export function stopSignals(
  atOnce: (signal: StopSignal) => void,
  { source = process, now = () => performance.now() }: { source?: SignalSource; now?: () => number } = {},
): AbortSignal {
  const stopping = new AbortController();
  let firstAt = 0;
  function onSignal(signal: StopSignal): void {
    if (!stopping.signal.aborted) {
      firstAt = now();
      stopping.abort();
    } else if (now() - firstAt > SAME_PRESS_MS) {
      atOnce(signal);
      source.exit(128 + constants.signals[signal]);
    }
  }
  source.on("SIGINT", onSignal);
  source.on("SIGTERM", onSignal);
  return stopping.signal;
}
