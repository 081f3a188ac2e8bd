/**
 * Follows a run through the server's event stream to its end, over restarts of the server and lost connections: it
 * connects again until it is told that the run has ended.
 */
import { setTimeout as sleepFor } from "node:timers/promises";
import type { OperatorError } from "../../kernel/errors.ts";
import { type ExponentialPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import { type Client, mayPass, pathTo } from "../common/client.ts";
import { createEventReader } from "../common/server-sent-events.ts";
import type { Run, RunNode, RunStatus } from "./api.ts";

export type RunEvent =
  | { event: "run"; data: Run }
  /** All of them at first, in the order of the definition, then those that changed. */
  | { event: "nodes"; data: RunNode[] }
  | { event: "end"; data: { status: RunStatus } };

export interface Follower {
  onEvent?(event: RunEvent): void;
  /** The connection is lost. Told once, however many tries it takes to have it back. */
  onAway?(sentence: string): void;
  onBack?(): void;
}

const AWAY: ExponentialPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseMs: 500,
  factor: 2,
  capMs: 15_000,
  jitter: 0.5,
};
/** The server gives signs of life far more often; a connection that died without a word is noticed by their absence. */
const SILENCE_MS_MAX = 60_000;
/** A connection that breaks earlier counts as one more failure, so that a broken server is not called without a pause. */
const STEADY_MS = 5_000;

/** Resolves with the status that the run ended with. Rejects when the server cannot be reached at first, or refuses. */
export async function followRun(
  client: Client,
  runId: string,
  { onEvent, onAway, onBack, signal }: Follower & { signal: AbortSignal },
): Promise<RunStatus> {
  const path = pathTo`api/v1/runs/${runId}/stream`;
  let wasConnected = false;
  let lastId = "";
  let baseMs = AWAY.baseMs;
  let failures = 0;
  let isAway = false;

  async function connect(): Promise<RunStatus | undefined> {
    const reader = createEventReader();
    const headers = lastId === "" ? {} : { "last-event-id": lastId };
    for await (const piece of client.stream({ method: "GET", path, headers, timeoutMs: SILENCE_MS_MAX, signal })) {
      if (isAway) onBack?.();
      isAway = false;
      wasConnected = true;
      for (const { event, data } of reader.push(piece)) {
        const news = { event, data: JSON.parse(data) } as RunEvent;
        onEvent?.(news);
        if (news.event === "end") return news.data.status;
      }
      lastId = reader.lastId() || lastId;
      baseMs = reader.retryMs() ?? baseMs;
    }
    return undefined;
  }

  for (;;) {
    const beganAt = performance.now();
    let away = `${client.url} closed the connection.`;
    try {
      const ended = await connect();
      if (ended !== undefined) return ended;
    } catch (error) {
      signal.throwIfAborted();
      if (!wasConnected || !mayPass(error)) throw error;
      away = (error as OperatorError).message;
    }
    failures = performance.now() - beganAt > STEADY_MS ? 1 : failures + 1;
    if (!isAway) onAway?.(away);
    isAway = true;
    await sleepFor(retryDelayMs({ ...AWAY, baseMs }, failures, Math.random), undefined, { signal });
  }
}
