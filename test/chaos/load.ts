/**
 * Clients that load a server and record its answers in the ledger: each registers files, claims shards in any stage and
 * finishes them. A client that gets no answer, or 503, does not know the outcome of its call and repeats it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { QUEUE_STAGES, type QueueStage } from "../../src/tracking/states.ts";
import type { Answer, Api } from "../client.ts";
import type { Random } from "../random.ts";
import type { ClaimedItem, Ledger, Outcome } from "./ledger.ts";

const CLIENTS = 8;
const LEASE_SECONDS = 10;
const CLAIM_MAX = 10;
const SHARDS_MAX = 8;
const PAUSE_AFTER_REFUSAL_MS = 5;
const PIPELINE = "/api/v1/pipeline";

export interface Load {
  start(api: Api): void;
  /** Waits until every call has been answered or has failed. Claimed items are kept for the next start. */
  stop(): Promise<void>;
  /** Resolves after this many more answers. */
  answers(count: number): Promise<void>;
  /** How many calls were refused with 503. */
  refused(): number;
  /** The time of the slowest call, without its wait for work. */
  slowestMs(): number;
}

type ClaimedWork = ClaimedItem & { stage: QueueStage; outcome: Outcome };
type Body = Record<string, unknown> & { items?: unknown };

export function createLoad({ ledger, random }: { ledger: Ledger; random: Random }): Load {
  console.info(`MILLRACE_TEST_SEED=${random.seed}`); // To repeat a run that failed.
  let answered = 0;
  let refused = 0;
  let waiting: { until: number; resolve: () => void }[] = [];
  let slowestMs = 0;
  let stopping = new AbortController();
  let running: Promise<unknown> = Promise.resolve();
  const clients = Array.from({ length: CLIENTS }, (_, n) => createClient(`client-${n}`));

  function countAnswer(): void {
    answered += 1;
    for (const { resolve } of waiting.filter(({ until }) => until <= answered)) resolve();
    waiting = waiting.filter(({ until }) => until > answered);
  }

  /** The answer, or undefined when the outcome is unknown. */
  async function call(server: Api, path: string, body: object, waitSeconds = 0): Promise<Answer<Body> | undefined> {
    const begun = performance.now();
    const answer = await server.post<Body>(PIPELINE + path, body).catch(() => undefined);
    slowestMs = Math.max(slowestMs, performance.now() - begun - waitSeconds * 1_000);
    if (answer?.status === 200) countAnswer();
    if (answer === undefined || answer.status !== 503) return answer;
    if (!(Number(answer.headers.get("retry-after")) >= 1)) ledger.unexpected(`503 from ${path} without Retry-After`);
    refused += 1;
    await sleep(PAUSE_AFTER_REFUSAL_MS);
    return undefined;
  }

  function createClient(name: string) {
    let files = 0;
    let file: { filename: string; shards: number[]; registered: boolean } | undefined;
    let claimedWork: ClaimedWork[] = [];

    async function produce(server: Api): Promise<void> {
      if (!file) {
        files += 1;
        const shards = Array.from({ length: random.between(1, SHARDS_MAX) }, (_, shard) => shard);
        file = { filename: `${name}-${files}`, shards, registered: false };
      }
      const { filename, shards } = file;
      if (!file.registered) {
        const answer = await call(server, "/files/register", { filename, shards });
        if (answer === undefined) return;
        if (answer.status === 200) ledger.registered(filename, shards);
        else ledger.unexpected(`register: ${textOf(answer)}`);
        file.registered = true;
      }
      const answer = await call(server, "/stages/event-ingest/done", { filename });
      if (answer === undefined) return;
      if (answer.status === 200) ledger.ingested(filename);
      else ledger.unexpected(`event-ingest done: ${textOf(answer)}`);
      file = undefined;
    }

    async function claim(server: Api): Promise<void> {
      const stage = QUEUE_STAGES[random.between(0, QUEUE_STAGES.length - 1)] as QueueStage;
      const waitSeconds = random.chance(0.2) ? 1 : 0;
      const limit = random.between(1, CLAIM_MAX);
      const request = { worker: name, limit, lease_seconds: LEASE_SECONDS, wait_seconds: waitSeconds };
      const answer = await call(server, `/queues/${stage}/claim`, request, waitSeconds);
      if (answer === undefined) return;
      if (answer.status !== 200) ledger.unexpected(`claim: ${textOf(answer)}`);
      for (const item of (answer.body.items ?? []) as ClaimedItem[]) {
        ledger.claimed(stage, item, LEASE_SECONDS);
        claimedWork.push({ ...item, stage, outcome: random.chance(0.1) ? "failed" : "done" });
      }
    }

    /** All claimed items are of one stage: a client claims only when it has none. */
    async function finish(server: Api): Promise<void> {
      for (const item of claimedWork) ledger.requested(item.stage, item, item.outcome);
      if (random.chance(0.5)) await Promise.all(claimedWork.map((item) => finishOne(server, item)));
      else await Promise.all([finishTogether(server, "done"), finishTogether(server, "failed")]);
    }

    async function finishOne(server: Api, item: ClaimedWork): Promise<void> {
      const { filename, shard, fence } = item;
      const answer = await call(server, transitionPath(item), { filename, shard, fence });
      if (answer) recordResult(item, answer.status === 200, textOf(answer));
    }

    async function finishTogether(server: Api, outcome: Outcome): Promise<void> {
      const batch = claimedWork.filter((item) => item.outcome === outcome);
      if (!batch[0]) return;
      const items = batch.map(({ filename, shard, fence }) => ({ filename, shard, fence }));
      const answer = await call(server, transitionPath(batch[0]), { items });
      if (!answer) return;
      const results = (answer.body.items ?? []) as { ok: boolean; code?: string }[];
      for (const [index, item] of batch.entries()) {
        const result = results[index];
        recordResult(item, result?.ok === true, JSON.stringify(result ?? answer.body));
      }
    }

    function recordResult(item: ClaimedWork, ok: boolean, words: string): void {
      claimedWork = claimedWork.filter((other) => other !== item);
      if (ok) ledger.finished(item.stage, item, item.outcome);
      else if (words.includes("LEASE_LOST")) ledger.refused(item.stage, item);
      else ledger.unexpected(`${item.outcome} of ${item.filename}/${item.shard} in ${item.stage}: ${words}`);
    }

    return async function run(server: Api, signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        if (claimedWork.length > 0) await finish(server);
        else if (file || random.chance(0.25)) await produce(server);
        else await claim(server);
      }
    };
  }

  return {
    start(server) {
      stopping = new AbortController();
      running = Promise.all(clients.map((run) => run(server, stopping.signal)));
    },
    async stop() {
      stopping.abort();
      await running;
    },
    answers: (count) => new Promise((resolve) => void waiting.push({ until: answered + count, resolve })),
    refused: () => refused,
    slowestMs: () => slowestMs,
  };
}

function transitionPath({ stage, outcome }: ClaimedWork): string {
  return `/stages/${stage}/${outcome === "done" ? "done" : "fail"}`;
}

function textOf({ status, body }: Answer<Body>): string {
  return `${status} ${JSON.stringify(body)}`;
}
