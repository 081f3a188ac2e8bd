/** Waiting in tests: for a state that another process causes, and for concurrent parties. */
import { setTimeout as sleep } from "node:timers/promises";

const TIMEOUT_MS = 30_000;
const POLL_MS = 5;

/** Waits for something that has no signal of its own, such as a row that another connection writes. */
export async function until<T>(
  look: () => Promise<T | undefined | false> | T | undefined | false,
  what: string,
  timeoutMs = TIMEOUT_MS,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await sleep(POLL_MS);
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
