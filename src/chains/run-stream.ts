/**
 * A run as it happens, for live views: server-sent events. A connection is woken by hints, not by a clock, reads only what
 * changed, and sends nothing when nothing did; a line now and then keeps proxies from closing it.
 */
import { setTimeout as sleepFor } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { Db } from "../kernel/db.ts";
import { ApiError } from "../kernel/errors.ts";
import type { Wake } from "../kernel/wake.ts";
import { PROGRESS_TOPIC } from "./engine.ts";
import { nodeReplies, runReply } from "./run-view.ts";
import { ENDED_RUN } from "./states.ts";
import { readChangedNodes, readNodes, readRun, readRunDag } from "./store/reads.ts";

export interface RunStreams {
  /** Sends the run until it has ended or the caller has gone. Resolves when the connection is closed. */
  send(runId: string, reply: FastifyReply): Promise<void>;
  /** Ends all: a stopping server does not wait for those who watch. */
  stop(): void;
}

/** At most this often, however much happens. */
const GAP_MS = 250;
const KEEP_ALIVE_MS = 15_000;
/** A row may be committed a moment after the time that it bears. What was sent before is not sent again. */
const OVERLAP_MS = 10_000;
const STREAMS_MAX = 1_000;
const RETRY_AFTER_SECONDS = 5;

export function createRunStreams(deps: { db: Db; wake: Wake; streamsMax?: number }): RunStreams {
  const { db, wake, streamsMax = STREAMS_MAX } = deps;
  const open = new Set<AbortController>();
  let stopped = false;

  async function follow(
    runId: string,
    write: (event: string, data: unknown) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const dag = (await readRunDag(db, runId)) ?? { nodes: [] };
    const toReply = nodeReplies(dag);
    const sent = new Map<string, string>();
    let lastRun = "";
    let newestMs: number | undefined; // Among the rows seen, by the database's clock.
    let changed = true;
    let wakeUp = () => {};
    const unlisten = wake.on(PROGRESS_TOPIC, () => {
      changed = true;
      wakeUp();
    });
    try {
      while (!signal.aborted) {
        if (changed) {
          changed = false;
          const run = await readRun(db, runId);
          if (!run) return;
          const rows =
            newestMs === undefined
              ? await readNodes(db, runId)
              : await readChangedNodes(db, runId, new Date(newestMs - OVERLAP_MS));
          for (const { updated_at } of rows) newestMs = Math.max(newestMs ?? 0, updated_at.getTime());
          const nodes = rows.map(toReply).filter((node) => {
            const text = JSON.stringify(node);
            const news = sent.get(node.nodeId) !== text;
            sent.set(node.nodeId, text);
            return news;
          });
          const shown = { ...runReply(run), counts: run.counts };
          const text = JSON.stringify(shown);
          if (text !== lastRun) write("run", shown);
          lastRun = text;
          if (nodes.length > 0) write("nodes", nodes);
          if (ENDED_RUN.has(run.status)) {
            write("end", { status: run.status });
            return;
          }
          await sleepFor(GAP_MS, undefined, { signal });
        } else if (!(await wokenWithin(KEEP_ALIVE_MS))) {
          write("", undefined);
          changed = true; // In case a hint was lost.
        }
      }
    } finally {
      unlisten();
    }

    function wokenWithin(ms: number): Promise<boolean> {
      return new Promise((resolve) => {
        const timer = setTimeout(() => finish(false), ms);
        const gone = () => finish(false);
        const finish = (woken: boolean) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", gone);
          wakeUp = () => {};
          resolve(woken);
        };
        wakeUp = () => finish(true);
        signal.addEventListener("abort", gone);
        if (changed) finish(true);
      });
    }
  }

  return {
    async send(runId, reply) {
      if (stopped) throw new ApiError("SHUTTING_DOWN", { seconds: RETRY_AFTER_SECONDS });
      if (open.size >= streamsMax) {
        throw new ApiError("OVERLOADED", { waiting: open.size, seconds: RETRY_AFTER_SECONDS });
      }
      const control = new AbortController();
      open.add(control);
      reply.hijack();
      const { raw } = reply;
      raw.on("close", () => control.abort());
      raw.writeHead(200, {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
        connection: "close", // Nobody asks again on it, and a stopping server would wait until they do not.
        "x-request-id": String(reply.getHeader("x-request-id") ?? ""),
      });
      const write = (event: string, data: unknown) => {
        raw.write(event === "" ? ": still here\n\n" : `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      };
      try {
        await follow(runId, write, control.signal);
      } catch (error) {
        if (!control.signal.aborted)
          write("error", { error: "The stream broke off. Connect again.", code: "INTERNAL" });
        if (!control.signal.aborted) throw error;
      } finally {
        open.delete(control);
        raw.end();
      }
    },
    stop() {
      stopped = true;
      for (const control of open) control.abort();
    },
  };
}
