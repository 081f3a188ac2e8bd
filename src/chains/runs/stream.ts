/**
 * Live views of a run, as server-sent events. A hint makes a connection read the rows that changed and send them. A comment
 * line every 15 s keeps proxies from closing an idle connection.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { OutgoingHttpHeaders } from "node:http";
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
  /** Sends the run until it has ended, the client disconnects or may no longer see it. Resolves when the connection is closed. */
  send(runId: string, reply: FastifyReply, accessEnds: AbortSignal): Promise<void>;
  /** Ends all streams, so that a stopping server does not wait for them. */
  stop(): void;
}

/** The shortest pause between two reads. */
const GAP_MS = 250;
const KEEP_ALIVE_MS = 15_000;
/** A row may be committed some time after its `updated_at`, so each read starts this much earlier. Repeated rows are not sent. */
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
    const isChanged = createChangeFilter();
    const waiting = new Map<string, NodeStatus>(); // Nodes that were last sent with a `waitingFor`.
    let newestMs: number | undefined; // `updated_at` of the newest row, by the database's clock.
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
          const nodes = await changedNodes();
          const shown = { ...runReply(run), counts: run.counts };
          if (isChanged("", shown)) await write("run", shown);
          if (nodes.length > 0) await write("nodes", nodes);
          if (ENDED_RUN.has(run.status)) {
            await write("end", { status: run.status });
            return;
          }
          await sleepFor(GAP_MS, undefined, { signal });
        } else if (!(await wokenWithin(KEEP_ALIVE_MS))) {
          await write("", undefined);
          changed = true; // A hint may have been lost.
        }
      }
    } finally {
      unlisten();
    }

    async function changedNodes(): Promise<NodeReply[]> {
      if (newestMs === undefined) return changedAmong(await readNodes(db, runId));
      const changedRows = changedAmong(await readChangedNodes(db, runId, new Date(newestMs - OVERLAP_MS)));
      const moved = new Set(changedRows.map(({ nodeId }) => nodeId));
      // What a node waits for can change without an update of its own row.
      const maybeChanged = dag.nodes.filter(
        ({ id, dependsOn = [], waitsFor = [] }) =>
          waiting.get(id) === "RETRYING" ||
          (waiting.has(id) && (waitsFor.length > 0 || dependsOn.some((parent) => moved.has(parent)))),
      );
      if (maybeChanged.length === 0) return changedRows;
      const ids = maybeChanged.map(({ id }) => id);
      return [...changedRows, ...changedAmong(await readSomeNodes(db, runId, ids))];
    }

    function changedAmong(rows: readonly NodeRow[]): NodeReply[] {
      for (const { updated_at } of rows) newestMs = Math.max(newestMs ?? 0, updated_at.getTime());
      return rows.map(toReply).filter((node) => {
        if (node.waitingFor === null) waiting.delete(node.nodeId);
        else waiting.set(node.nodeId, node.status);
        return isChanged(node.nodeId, node);
      });
    }

    function wokenWithin(ms: number): Promise<boolean> {
      return new Promise((resolve) => {
        const timer = setTimeout(() => finish(false), ms);
        const aborted = () => finish(false);
        const finish = (woken: boolean) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", aborted);
          wakeUp = () => {};
          resolve(woken);
        };
        wakeUp = () => finish(true);
        signal.addEventListener("abort", aborted);
        if (changed) finish(true);
      });
    }
  }

  return {
    async send(runId, reply, accessEnds) {
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
        ...(reply.getHeaders() as OutgoingHttpHeaders),
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
        connection: "close", // Nothing follows on it, and a stopping server would wait for a kept-alive connection.
      });
      const put = (event: string, data: unknown): boolean =>
        raw.write(event === "" ? ": still here\n\n" : `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      const write = async (event: string, data: unknown) => {
        // A slow client gets fewer messages, each with the state of that moment.
        if (!put(event, data)) await once(raw, "drain", { signal: control.signal });
      };
      const endAccess = () => {
        put("error", { error: "The key was revoked, or the token has expired.", code: "UNAUTHENTICATED" });
        control.abort();
      };
      accessEnds.addEventListener("abort", endAccess);
      try {
        await follow(runId, write, control.signal);
      } catch (error) {
        if (control.signal.aborted) return;
        put("error", { error: "The stream failed. Connect again.", code: "INTERNAL" });
        throw error;
      } finally {
        accessEnds.removeEventListener("abort", endAccess); // A write after the end would be an error that nobody handles.
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

/** Whether a value differs from the last one sent under its key. Keeps hashes, because ten thousand texts would be too large. */
function createChangeFilter(): (key: string, value: unknown) => boolean {
  const sent = new Map<string, string>();
  return (key, value) => {
    const hash = createHash("sha256").update(JSON.stringify(value)).digest("base64");
    if (sent.get(key) === hash) return false;
    sent.set(key, hash);
    return true;
  };
}
