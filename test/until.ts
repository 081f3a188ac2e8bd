/** Waiting in tests: for a state that another process causes, and for concurrent parties. */
import { setTimeout as sleep } from "node:timers/promises";

const TIMEOUT_MS = 30_000;
const POLL_MS_MIN = 5;
const POLL_MS_MAX = 50;

/**
 * Waits for something that has no signal of its own, such as a row that another connection writes. It looks less often the longer it
 * waits: looking takes processor time from what it waits for, and finds it a tenth too late at most.
 */
export async function until<T>(
  look: () => Promise<T | undefined | false> | T | undefined | false,
  what: string,
  timeoutMs = TIMEOUT_MS,
): Promise<T> {
  const begun = performance.now();
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    const waitedMs = performance.now() - begun;
    if (waitedMs > timeoutMs) throw new Error(`waited in vain for ${what}`);
    await sleep(Math.min(Math.max(waitedMs / 10, POLL_MS_MIN), POLL_MS_MAX));
  }
}

/** A barrier that opens once `parties` have reached it; later ones pass. Forces transactions to conflict. */
export function barrierOf(parties: number): () => Promise<void> {
  let arrived = 0;
  const { promise, resolve } = signal();
  return () => {
    arrived += 1;
    if (arrived >= parties) resolve();
    return promise;
  };
}

/** A promise that the test resolves or rejects. */
export function signal<T = void>(): { promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void } {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
