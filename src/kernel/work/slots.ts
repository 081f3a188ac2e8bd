/** A limit of concurrent work. Callers beyond it wait in order, and an aborted one stops waiting. */

export interface Slots {
  /** Waits for a slot and returns the function that releases it. Rejects with the signal's reason if it aborts first. */
  take(signal: AbortSignal): Promise<() => void>;
}

export function createSlots(max: number): Slots {
  let free = max;
  const waiters = new Set<() => void>();

  /** Passes the slot directly to the next waiter, so that a later caller cannot take it. */
  function release(): void {
    const [next] = waiters;
    if (next) next();
    else free += 1;
  }

  return {
    take(signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (free > 0) {
          free -= 1;
          return resolve(release);
        }
        const enter = () => {
          waiters.delete(enter);
          signal.removeEventListener("abort", leave);
          resolve(release);
        };
        const leave = () => {
          waiters.delete(enter);
          reject(signal.reason);
        };
        waiters.add(enter);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
  };
}
