/** How many may work at a time. The rest wait in the order in which they came, and an aborted one leaves the line. */

export interface Slots {
  /** Waits for a slot and returns what gives it back. Rejects with the signal's reason when that comes first. */
  take(signal: AbortSignal): Promise<() => void>;
}

export function createSlots(max: number): Slots {
  let free = max;
  const line = new Set<() => void>();

  /** The slot goes to the next in line directly, so that a newcomer cannot slip in between. */
  function giveBack(): void {
    const [next] = line;
    if (next) next();
    else free += 1;
  }

  return {
    take(signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (free > 0) {
          free -= 1;
          return resolve(giveBack);
        }
        const enter = () => {
          line.delete(enter);
          signal.removeEventListener("abort", leave);
          resolve(giveBack);
        };
        const leave = () => {
          line.delete(enter);
          reject(signal.reason);
        };
        line.add(enter);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
  };
}
