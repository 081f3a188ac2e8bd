/** What is compared: an engine that runs DAGs of no-op nodes in this process and keeps all their state in Postgres. */
import type { Load } from "./shapes.ts";

export interface Engine {
  name: string;
  /** Starts the runs of `load` and returns when the last has ended and that is written. A node does nothing but call `onNode`. */
  run(load: Load, onNode: (runId: string) => void): Promise<void>;
  end(): Promise<void>;
}

/** Keeps as many runs under way as `load` wants: as one ends, the next begins. */
export async function keepInFlight({ runs, inFlight }: Load, one: () => Promise<void>): Promise<void> {
  let left = runs;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left > 0) {
        left -= 1;
        await one();
      }
    }),
  );
}
