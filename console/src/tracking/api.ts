/** What the pages of tracking read of the public API: paths, and the fields that they use. */
import { pathTo, withQuery } from "../api/client.ts";

const BASE = "/api/v1/pipeline";

/** In the order in which a shard goes through them. */
export const STAGES = ["event-ingest", "shard-splitter", "shard-worker", "mysql-sender"] as const;
export type Stage = (typeof STAGES)[number];
export const STATUSES = ["failed", "started", "new", "done"] as const;
export type Status = (typeof STATUSES)[number];
export const REASONS = ["failed", "lease_expired", "started_long"] as const;
export type Reason = (typeof REASONS)[number];

export interface StageQueue {
  stage: Stage;
  ready: number;
  started: number;
  done: number;
  failed: number;
  leased: number;
  lease_expired: number;
  started_long: number;
  oldest_ready_at?: string;
}
export interface Queues {
  stages: readonly StageQueue[];
}

export interface GridPage {
  shards: readonly number[];
  next_shard: number | null;
  items: readonly { filename: string; cells: string }[];
  next: string | null;
}

export interface FileSummary {
  filename: string;
  created_at: string;
  updated_at: string;
  shards: number;
  /** By stage, with `_` for `-`, then by status. */
  stages: Readonly<Record<string, Partial<Record<Status, number>>>>;
}
export interface FilePage {
  items: readonly FileSummary[];
  page: number;
  size: number;
  total: number;
}

export interface Shard {
  shard: number;
  event_ingest_status: Status;
  shard_splitter_status: Status;
  shard_worker_status: Status;
  mysql_sender_status: Status;
  created_at: string;
  updated_at: string;
  worker?: string;
  leased_until?: string;
  lost_count: number;
  last_error?: string;
}
export interface ShardPage {
  items: readonly Shard[];
  next: number | null;
}

export interface StuckShard {
  filename: string;
  shard: number;
  stage: Stage;
  reason: Reason;
  worker?: string;
  leased_until?: string;
  lost_count: number;
  last_error?: string;
  updated_at: string;
}
export interface StuckPage {
  items: readonly StuckShard[];
  next: string | null;
}

/** Which stuck shards are retried. */
export interface RetryOf {
  stage?: Stage | undefined;
  reason?: Reason | undefined;
  q?: string | undefined;
  filename?: string | undefined;
}
export interface Retried {
  retried: number;
  by_reason: Readonly<Record<Reason, number>>;
  more: boolean;
  until: string;
}

export function statusIn(shard: Shard, stage: Stage): Status {
  return shard[`${stage.replace("-", "_")}_status` as "event_ingest_status"];
}

type Query = Parameters<typeof withQuery>[1];
export const paths = {
  queues: `${BASE}/queues`,
  grid: (query: Query) => withQuery(`${BASE}/grid`, query),
  files: (query: Query) => withQuery(`${BASE}/files`, query),
  shards: (filename: string, query: Query) => withQuery(`${BASE}${pathTo`/files/${filename}/shards`}`, query),
  stuck: (query: Query) => withQuery(`${BASE}/stuck`, query),
  retry: (isDry: boolean) => withQuery(`${BASE}/stuck:retry`, { dryRun: isDry ? true : undefined }),
  retryOne: (stage: Stage) => `${BASE}${pathTo`/stages/${stage}/retry`}`,
} as const;
