/** Follows a run through the server's event stream until it ends. Reconnects after restarts of the server and lost connections. */
import { setTimeout as sleepFor } from "node:timers/promises";
import type { OperatorError } from "../../kernel/errors.ts";
import { type ExponentialPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import { type Client, isTransient, pathTo } from "../common/client.ts";
import { createEventReader } from "../common/server-sent-events.ts";
import type { Run, RunNode, RunStatus } from "./api.ts";

export type RunEvent =
  | { event: "run"; data: Run }
  /** First all nodes, in the order of the definition, then those that changed. */
  | { event: "nodes"; data: RunNode[] }
  | { event: "end"; data: { status: RunStatus } };

export interface Follower {
  onEvent?(event: RunEvent): void;
  /** The connection is lost. Called once, however many attempts the reconnection takes. */
  onDisconnect?(sentence: string): void;
  onReconnect?(): void;
}

const RECONNECT: ExponentialPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseMs: 500,
  factor: 2,
  capMs: 15_000,
  jitter: 0.5,
};
/** The server sends keep-alives more often, so a longer silence means a dead connection. */
const IDLE_MS_MAX = 60_000;
/** A connection that breaks earlier counts as a failure, so that the delay grows. */
const STABLE_MS = 5_000;

/** Resolves with the final status of the run. Rejects if the first connection fails, or the server refuses. */
export async function followRun(
  client: Client,
  runId: string,
  { onEvent, onDisconnect, onReconnect, signal }: Follower & { signal: AbortSignal },
): Promise<RunStatus> {
  const path = pathTo`api/v1/runs/${runId}/stream`;
  let wasConnected = false;
  let lastId = "";
  let baseMs = RECONNECT.baseMs;
  let failures = 0;
  let isDisconnected = false;

  async function connect(): Promise<RunStatus | undefined> {
    const reader = createEventReader();
    const headers = lastId === "" ? {} : { "last-event-id": lastId };
    for await (const piece of client.stream({ method: "GET", path, headers, timeoutMs: IDLE_MS_MAX, signal })) {
      if (isDisconnected) onReconnect?.();
      isDisconnected = false;
      wasConnected = true;
      for (const { event, data } of reader.push(piece)) {
        const runEvent = { event, data: JSON.parse(data) } as RunEvent;
        onEvent?.(runEvent);
        if (runEvent.event === "end") return runEvent.data.status;
      }
      lastId = reader.lastId() || lastId;
      baseMs = reader.retryMs() ?? baseMs;
    }
    return undefined;
  }

  for (;;) {
    const beganAt = performance.now();
    let reason = `${client.url} closed the connection.`;
    try {
      const ended = await connect();
      if (ended !== undefined) return ended;
    } catch (error) {
      signal.throwIfAborted();
      if (!wasConnected || !isTransient(error)) throw error;
      reason = (error as OperatorError).message;
    }
    failures = performance.now() - beganAt > STABLE_MS ? 1 : failures + 1;
    if (!isDisconnected) onDisconnect?.(reason);
    isDisconnected = true;
    await sleepFor(retryDelayMs({ ...RECONNECT, baseMs }, failures, Math.random), undefined, { signal });
  }
}
