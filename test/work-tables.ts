/**
 * Two work tables of very different shapes with the same lease, so that every test covers both. Items have a number, which
 * each table converts to its own key.
 */
import type { Db } from "../src/kernel/data/db.ts";
import { type AlsoOnClaim, type Held, type Lease, leaseOn, returning } from "../src/kernel/work/lease.ts";
import type { TestDatabase } from "./database.ts";

export interface Key {
  n: number | string;
  tenant?: string;
}
export type Claimed = Held<Key> & { fence: string };

export interface NewItem {
  n: number;
  state?: string;
  priority?: number;
  dueInSeconds?: number;
}

export interface ItemRow {
  n: number;
  state: string;
  held: boolean;
  fenced: boolean;
  lost: number;
  claims: number;
  note: string | null;
}

export interface WorkTable {
  shape: string;
  lease: Lease<Key, { claims: number }>;
  /** Whether items have their own leases, which can be extended. */
  extend: boolean;
  states: { ready: readonly [string, ...string[]]; leased: string; dead: string };
  create(database: TestDatabase): Promise<void>;
  add(database: TestDatabase, items: readonly NewItem[]): Promise<void>;
  clear(database: TestDatabase): Promise<void>;
  /** All items by number. */
  rows(database: TestDatabase): Promise<ItemRow[]>;
  keyOf(n: number): Key;
  /** A new holder: a worker name or a session. */
  holder(database: TestDatabase): Promise<string>;
  claim(
    db: Db,
    holder: string,
    limit: number,
    also?: AlsoOnClaim<Claimed & { claims: number }>,
  ): Promise<(Claimed & { claims: number })[]>;
  /** Expires the holder's leases. */
  expire(database: TestDatabase, holder: string): Promise<void>;
}

const outcomes = {
  done: { set: "state = 'done'" },
  failed: { set: "state = 'failed', note = i.note", values: { note: "text?" } },
} as const;
const common = {
  dueAt: "due_at",
  orderBy: "priority, due_at, n",
  fence: "fence",
  lost: { column: "lost_count" },
  onClaim: { claims: "t.claims + 1" },
  returning: returning<{ claims: number }>("t.claims"),
  outcomes,
} as const;
const columns = `state text not null, priority int not null, due_at timestamptz not null, fence bigint,
  lost_count int not null default 0, claims int not null default 0, note text`;

let holders = 0;

const jobs: WorkTable = {
  shape: "a bigint key, held item by item",
  extend: true,
  states: { ready: ["ready"], leased: "leased", dead: "dead" },
  lease: leaseOn({
    ...common,
    name: "test.job",
    table: "job",
    key: { n: "int8" },
    state: { column: "state", ready: ["ready"], leased: "leased", dead: "dead" },
    hold: { by: "item", owner: "worker", until: "leased_until" },
  }),
  async create({ query }) {
    await query(`create table job (n bigint primary key, ${columns}, worker text, leased_until timestamptz)`);
    await query("create index job_ready on job (priority, due_at, n) where state = 'ready'");
    await query("create index job_leased on job (leased_until) where state = 'leased'");
  },
  async add({ query }, items) {
    await query(
      `insert into job (n, state, priority, due_at)
       select n, coalesce(state, 'ready'), priority, now() + make_interval(secs => due)
       from unnest($1::bigint[], $2::text[], $3::int[], $4::float8[]) as i(n, state, priority, due)`,
      arraysOf(items),
    );
  },
  clear: async ({ query }) => void (await query("truncate job")),
  rows: ({ query }) => query(rowsOf("job", "worker is not null or leased_until is not null")),
  keyOf: (n) => ({ n: String(n) }),
  async holder() {
    holders += 1;
    return `worker ${holders}`;
  },
  claim: (db, holder, limit, also) => jobs.lease.claim(db, { holder, limit, seconds: 60 }, also),
  expire: async ({ query }, holder) =>
    void (await query("update job set leased_until = now() - interval '1 second' where worker = $1", [holder])),
};

const tasks: WorkTable = {
  shape: "a composite key and two ready states, held by session",
  extend: false,
  states: { ready: ["new", "it's time"], leased: "being worked on", dead: "put aside" },
  lease: leaseOn({
    ...common,
    name: "test.task",
    table: "task",
    key: { tenant: "text", n: "int4" },
    state: { column: "state", ready: ["new", "it's time"], leased: "being worked on", dead: "put aside" },
    readyWhen: "t.enabled",
    hold: { by: "session", session: "session_id" },
  }),
  async create({ query }) {
    await query(
      `create table task (tenant text, n int, ${columns}, enabled boolean not null default true, session_id bigint,
         primary key (tenant, n))`,
    );
    await query(
      "create index task_ready on task (priority, due_at, n) where state in ('new', 'it''s time') and enabled",
    );
    await query("create index task_leased on task (session_id) where state = 'being worked on'");
  },
  async add({ query }, items) {
    await query(
      `insert into task (tenant, n, state, priority, due_at)
       select 'tenant ' || n % 3, n, coalesce(state, 'new'), priority, now() + make_interval(secs => due)
       from unnest($1::int[], $2::text[], $3::int[], $4::float8[]) as i(n, state, priority, due)`,
      arraysOf(items),
    );
  },
  clear: async ({ query }) => void (await query("truncate task")),
  rows: ({ query }) => query(rowsOf("task", "session_id is not null")),
  keyOf: (n) => ({ tenant: `tenant ${n % 3}`, n }),
  async holder({ query }) {
    const [session] = await query<{ id: string }>(
      `insert into kernel.session (process, roles, version, expires_at)
       values ('test', '{}', '0', now() + interval '1 hour') returning id`,
    );
    return session?.id ?? "";
  },
  claim: (db, holder, limit, also) => tasks.lease.claim(db, { holder, limit }, also),
  expire: async ({ query }, holder) =>
    void (await query("update kernel.session set expires_at = now() - interval '1 second' where id = $1", [holder])),
};

export const WORK_TABLES = [jobs, tasks];

/** The numbers of items, in ascending order. */
export function numbersOf(keys: readonly Key[]): number[] {
  return keys.map(({ n }) => Number(n)).sort((one, other) => one - other);
}

function arraysOf(items: readonly NewItem[]): unknown[][] {
  return [
    items.map(({ n }) => n),
    items.map(({ state }) => state ?? null),
    items.map(({ priority }) => priority ?? 0),
    items.map(({ dueInSeconds, n }) => dueInSeconds ?? n - 100_000), // Due long ago, in the order of their numbers.
  ];
}

function rowsOf(table: string, held: string): string {
  return `select n::int, state, ${held} as held, fence is not null as fenced, lost_count as lost, claims, note from ${table} order by n`;
}
