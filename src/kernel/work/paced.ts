/**
 * Sends on the pulse what a process has collected for others: the first at once, then at most once in `gapMs`, one at a time,
 * and after a failure a second later. Nothing is sent while the connection is lost.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Pulse } from "./pulse.ts";

const GAP_AFTER_FAILURE_MS = 1_000;

export interface Paced {
  /** Call it when something was collected. */
  schedule(): void;
  /** Sends what is left. Later calls of `schedule` have no effect. */
  stop(): Promise<void>;
}

export interface PacedOptions {
  pulse: Pulse;
  gapMs: number;
  isEmpty(): boolean;
  /** Sends all that is collected. Resolves to whether it was sent; if not, what is left is sent later. */
  send(): Promise<boolean>;
}

export function createPaced({ pulse, gapMs, isEmpty, send }: PacedOptions): Paced {
  /** What is sent belongs to no request, so it is in the trace of none. */
  const outside = AsyncLocalStorage.snapshot();
  let cancelTimer: (() => void) | undefined;
  let sending: Promise<void> | undefined;
  let sendAfterMs = 0;
  let stopped = false;

  function schedule(): void {
    if (stopped || isEmpty() || cancelTimer || sending || !pulse.isConnected()) return;
    const waitMs = sendAfterMs - performance.now();
    if (waitMs > 0) {
      const timer = setTimeout(sendNow, waitMs);
      cancelTimer = () => clearTimeout(timer);
    } else {
      const immediate = setImmediate(sendNow); // A timer of 0 ms would take a whole millisecond.
      cancelTimer = () => clearImmediate(immediate);
    }
  }

  function sendNow(): void {
    cancelTimer = undefined;
    sending = outside(sendOnce).finally(() => {
      sending = undefined;
      schedule();
    });
  }

  async function sendOnce(): Promise<void> {
    sendAfterMs = performance.now() + gapMs;
    if (!(await send())) sendAfterMs = performance.now() + GAP_AFTER_FAILURE_MS;
  }

  pulse.onReconnect(() => {
    sendAfterMs = 0;
    schedule();
  });
  return {
    schedule,
    async stop() {
      stopped = true;
      cancelTimer?.();
      await sending;
      if (!isEmpty()) await send(); // For example hints of work that was just released.
    },
  };
}
