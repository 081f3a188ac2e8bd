/** The workers of the scenario: one for each stage, which claims shards and reports them done until none is left. */
import type { Api } from "./api.ts";

const STAGES = ["shard-splitter", "shard-worker", "mysql-sender"] as const;
type Stage = (typeof STAGES)[number];

interface Claimed {
  filename: string;
  shard: number;
  fence: string;
}

export interface Work {
  /** The number of shards of all files. */
  shards: number;
  /** The work of the last stage. */
  send(claimed: Claimed): Promise<void>;
  onStageDone(stage: Stage): void;
}

/** No fewer than can be ready at once. */
const CLAIM_LIMIT = 10;
const WAIT_SECONDS = 10;

export async function workThroughStages(api: Api, work: Work): Promise<void> {
  await Promise.all(STAGES.map((stage) => workInStage(api, stage, work)));
}

async function workInStage(api: Api, stage: Stage, { shards, send, onStageDone }: Work): Promise<void> {
  for (let left = shards; left > 0; ) {
    const { items } = await api.post<{ items: Claimed[] }>(`api/v1/pipeline/queues/${stage}/claim`, {
      worker: `${stage}-1`,
      limit: CLAIM_LIMIT,
      wait_seconds: WAIT_SECONDS,
    });
    if (items.length === 0) return; // The checks show what is missing.
    if (stage === "mysql-sender") await Promise.all(items.map(send));
    const done = items.map(({ filename, shard, fence }) => ({ filename, shard, fence }));
    await api.post(`api/v1/pipeline/stages/${stage}/done`, { items: done });
    left -= items.length;
  }
  onStageDone(stage);
}
