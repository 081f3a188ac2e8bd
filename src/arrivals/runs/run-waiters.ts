/**
 * Requests that wait for the end of a run, whichever process executes it. One query serves all of them: after a
 * hint that a run has ended, and every 2 s in case a hint was lost.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { findInstances, type InstanceKey } from "../store/instances.ts";
import { type TaskRow, tasksOf } from "../store/tasks.ts";
import { ENDED_TOPIC } from "../topics.ts";
import { isOpen } from "./states.ts";

export interface RunWaiters {
  /**
   * Resolves with the run of this generation, or the one that replaced it, when it has ended. Undefined if the signal aborts
   * first.
   */
  ended(key: InstanceKey & { generation: number }, signal: AbortSignal): Promise<TaskRow | undefined>;
  /** Aborts when the process stops, for requests that must not delay the stop. */
  closing: AbortSignal;
  stop(): void;
}

interface Waiting extends InstanceKey {
  generation: number;
  resolve(task: TaskRow | undefined): void;
}

const POLL_MS = 2_000;
const BATCH_FROM = 20;
const BATCH_DELAY_MS = 50;

export function createRunWaiters({ db, wake }: { db: Db; wake: Wake }): RunWaiters {
  const waiting = new Set<Waiting>();
  let reading = false;
  let readAgain = false;
  let timer: NodeJS.Timeout | undefined;
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // One per waiter; by default Node warns of a leak after ten.
  wake.on(ENDED_TOPIC, () => void read());

  async function read(): Promise<void> {
    readAgain = reading;
    if (reading || waiting.size === 0) return;
    reading = true;
    try {
      // With many waiters the query is large and many runs end during it, so hints are batched.
      if (waiting.size > BATCH_FROM) await sleep(BATCH_DELAY_MS, undefined, { ref: false });
      await readOnce();
    } catch {
      // The next read will find them; every waiter has its own timeout.
    } finally {
      reading = false;
    }
    if (readAgain) void read();
    else schedule();
  }

  async function readOnce(): Promise<void> {
    const all = [...waiting];
    const runs = [...new Map(all.map((one) => [textOf(one, one.generation), one])).values()];
    const instances = new Map((await findInstances(db, runs)).map((row) => [textOf(row), row]));
    const tasks = new Map((await tasksOf(db, runs)).map((row) => [textOf(row, row.wanted), row]));
    for (const one of all) {
      const instance = instances.get(textOf(one));
      const isOver =
        !instance || // The model was deleted.
        instance.generation > one.generation ||
        (instance.generation === one.generation && !isOpen(instance.state)) ||
        (instance.generation < one.generation && instance.state === "idle");
      if (isOver) one.resolve(tasks.get(textOf(one, one.generation)));
    }
  }

  function schedule(): void {
    clearTimeout(timer);
    if (waiting.size > 0) timer = setTimeout(() => void read(), POLL_MS).unref();
  }

  return {
    ended(key, signal) {
      return new Promise((resolve) => {
        const one: Waiting = {
          ...key,
          resolve(task) {
            waiting.delete(one);
            signal.removeEventListener("abort", giveUp);
            resolve(task);
          },
        };
        const giveUp = () => one.resolve(undefined);
        if (signal.aborted) return resolve(undefined);
        signal.addEventListener("abort", giveUp, { once: true });
        waiting.add(one);
        void read();
      });
    },
    closing: closing.signal,
    stop: () => closing.abort(),
  };
}

function textOf({ model_id, op_time }: InstanceKey, generation?: number): string {
  return `${model_id}\n${op_time}\n${generation ?? ""}`;
}
