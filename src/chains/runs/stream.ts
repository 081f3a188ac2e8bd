/**
 * A run as it happens, for live views: server-sent events. A connection is woken by hints, not by a clock, reads only what
 * changed, and sends nothing when nothing did; a line now and then keeps proxies from closing it.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleepFor } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { Db } from "../../kernel/data/db.ts";
import { kernelError } from "../../kernel/errors.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { ENDED_RUN, type NodeStatus } from "../engine/states.ts";
import {
  type NodeRow,
  readChangedNodes,
  readNodes,
  readRunDag,
  readSomeNodes,
  readWatchedRun,
} from "../store/reads.ts";
import { progressTopic } from "../topics.ts";
import { type NodeReply, nodeReplies, runReply } from "./view.ts";

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
    write: (event: string, data: unknown) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const dag = (await readRunDag(db, runId)) ?? { nodes: [] };
    const toReply = nodeReplies(dag);
    const isNews = createNewsFilter();
    const waiting = new Map<string, NodeStatus>(); // Those that were last told to wait.
    let newestMs: number | undefined; // Among the rows seen, by the database's clock.
    let changed = true;
    let wakeUp = () => {};
    const unlisten = wake.on(progressTopic(runId), () => {
      changed = true;
      wakeUp();
    });
    try {
      while (!signal.aborted) {
        if (changed) {
          changed = false;
          const run = await readWatchedRun(db, runId);
          if (!run) return;
          const nodes = await newsOfNodes();
          const shown = { ...runReply(run), counts: run.counts };
          if (isNews("", shown)) await write("run", shown);
          if (nodes.length > 0) await write("nodes", nodes);
          if (ENDED_RUN.has(run.status)) {
            await write("end", { status: run.status });
            return;
          }
          await sleepFor(GAP_MS, undefined, { signal });
        } else if (!(await wokenWithin(KEEP_ALIVE_MS))) {
          await write("", undefined);
          changed = true; // In case a hint was lost.
        }
      }
    } finally {
      unlisten();
    }

    async function newsOfNodes(): Promise<NodeReply[]> {
      if (newestMs === undefined) return newsAmong(await readNodes(db, runId));
      const news = newsAmong(await readChangedNodes(db, runId, new Date(newestMs - OVERLAP_MS)));
      const moved = new Set(news.map(({ nodeId }) => nodeId));
      // What a node waits for changes without a trace in its own row.
      const unsure = dag.nodes.filter(
        ({ id, dependsOn = [], waitsFor = [] }) =>
          waiting.get(id) === "RETRYING" ||
          (waiting.has(id) && (waitsFor.length > 0 || dependsOn.some((parent) => moved.has(parent)))),
      );
      if (unsure.length === 0) return news;
      const ids = unsure.map(({ id }) => id);
      return [...news, ...newsAmong(await readSomeNodes(db, runId, ids))];
    }

    function newsAmong(rows: readonly NodeRow[]): NodeReply[] {
      for (const { updated_at } of rows) newestMs = Math.max(newestMs ?? 0, updated_at.getTime());
      return rows.map(toReply).filter((node) => {
        if (node.waitingFor === null) waiting.delete(node.nodeId);
        else waiting.set(node.nodeId, node.status);
        return isNews(node.nodeId, node);
      });
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
      if (stopped) throw kernelError("SHUTTING_DOWN", { seconds: RETRY_AFTER_SECONDS });
      if (open.size >= streamsMax) {
        throw kernelError("OVERLOADED", { waiting: open.size, seconds: RETRY_AFTER_SECONDS });
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
      const write = async (event: string, data: unknown) => {
        const text = event === "" ? ": still here\n\n" : `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
        // A watcher that reads slowly is told less often, and never more than what is true by then.
        if (!raw.write(text)) await once(raw, "drain", { signal: control.signal });
      };
      try {
        await follow(runId, write, control.signal);
      } catch (error) {
        if (control.signal.aborted) return;
        void write("error", { error: "The stream broke off. Connect again.", code: "INTERNAL" }).catch(() => {});
        throw error;
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

/** Whether something differs from what was last told under its key. Keeps a hash: ten thousand texts would be too much. */
function createNewsFilter(): (key: string, value: unknown) => boolean {
  const told = new Map<string, string>();
  return (key, value) => {
    const hash = createHash("sha256").update(JSON.stringify(value)).digest("base64");
    if (told.get(key) === hash) return false;
    told.set(key, hash);
    return true;
  };
}
