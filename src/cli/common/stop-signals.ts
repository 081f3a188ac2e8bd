/** Ctrl-C and SIGTERM: the first requests a graceful stop, a second one an immediate stop. */
import { constants } from "node:os";

type StopSignal = "SIGINT" | "SIGTERM";

/** One Ctrl-C can arrive twice: the terminal signals the process group, and `npm start`, which is in it, forwards its copy. */
const SAME_PRESS_MS = 500;

/** The process, or a substitute in tests. */
export interface SignalSource {
  on(signal: StopSignal, listener: (signal: StopSignal) => void): unknown;
  exit(code: number): void;
}

/** Aborted by the first signal. `atOnce` is called on a second one, just before the process exits as if killed by it. */
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
