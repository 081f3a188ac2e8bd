/**
 * Where those wait who want to hear how a run ended, whichever process does it. One question for all of them, asked when a
 * run has ended somewhere, and once in a while in case that was not heard.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { findInstances, type InstanceKey } from "../store/instances.ts";
import { type TaskRow, tasksOf } from "../store/tasks.ts";
import { ENDED_TOPIC } from "../topics.ts";

export interface WaitingRoom {
  /**
   * How the run of this generation ended, or the one that took its place. Undefined when it has not ended by the time the
   * signal aborts.
   */
  ended(key: InstanceKey & { generation: number }, signal: AbortSignal): Promise<TaskRow | undefined>;
  /** Aborts when the process stops, for those who would rather have no answer than keep it from that. */
  closing: AbortSignal;
  stop(): void;
}

interface Waiting extends InstanceKey {
  generation: number;
  resolve(task: TaskRow | undefined): void;
}

const POLL_MS = 2_000;
const GATHERED_FROM = 20;
const GATHER_MS = 50;

export function createWaitingRoom({ db, wake }: { db: Db; wake: Wake }): WaitingRoom {
  const waiting = new Set<Waiting>();
  let looking = false;
  let lookAgain = false;
  let timer: NodeJS.Timeout | undefined;
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // As many as wait; Node would take them for a leak.
  wake.on(ENDED_TOPIC, () => void look());

  async function look(): Promise<void> {
    lookAgain = looking;
    if (looking || waiting.size === 0) return;
    looking = true;
    try {
      // With a thousand waiting a look is a large question, and as many runs end while it is asked.
      if (waiting.size > GATHERED_FROM) await sleep(GATHER_MS, undefined, { ref: false });
      await lookOnce();
    } catch {
      // The next look will tell; whoever waits has a time of his own.
    } finally {
      looking = false;
    }
    if (lookAgain) void look();
    else schedule();
  }

  async function lookOnce(): Promise<void> {
    const all = [...waiting];
    const runs = [...new Map(all.map((one) => [textOf(one, one.generation), one])).values()];
    const instances = new Map((await findInstances(db, runs)).map((row) => [textOf(row), row]));
    const tasks = new Map((await tasksOf(db, runs)).map((row) => [textOf(row, row.wanted), row]));
    for (const one of all) {
      const instance = instances.get(textOf(one));
      const isOver =
        !instance || // The model was deleted.
        instance.generation > one.generation ||
        (instance.generation === one.generation && instance.state !== "running") ||
        (instance.generation < one.generation && instance.state === "idle");
      if (isOver) one.resolve(tasks.get(textOf(one, one.generation)));
    }
  }

  function schedule(): void {
    clearTimeout(timer);
    if (waiting.size > 0) timer = setTimeout(() => void look(), POLL_MS).unref();
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
        void look();
      });
    },
    closing: closing.signal,
    stop: () => closing.abort(),
  };
}

function textOf({ model_id, op_time }: InstanceKey, generation?: number): string {
  return `${model_id}\n${op_time}\n${generation ?? ""}`;
}
