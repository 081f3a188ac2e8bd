/** Waiting in tests: for a state that another process brings about, and for each other. */
import { setTimeout as sleep } from "node:timers/promises";

const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 5;

/** Waits for something that has no signal of its own, such as a row that another connection writes. */
export async function until<T>(
  look: () => Promise<T | undefined | false> | T | undefined | false,
  what: string,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await sleep(LOOK_EVERY_MS);
  }
}

/** A gate that opens once `parties` have come to it; later ones pass. Forces two transactions into each other's way. */
export function meetingOf(parties: number): () => Promise<void> {
  let come = 0;
  const { promise, resolve } = signal();
  return () => {
    come += 1;
    if (come >= parties) resolve();
    return promise;
  };
}

/** A promise to be settled from outside. */
export function signal<T = void>(): { promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void } {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
