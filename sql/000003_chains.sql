-- Chains of work drawn as a DAG: their definitions, their runs, and the narrow tables that the engine works on.

create schema chains;

-- The present definition of a chain. Every version it ever had is kept in job_chain_version, which never changes.
create table chains.job_chain_definition (
  chain_id        uuid primary key,
  name            varchar(128) not null unique,
  description     text,
  enabled         boolean not null default true,
  version         bigint not null default 1,
  dag_json        jsonb not null,
  max_active_runs integer,
  run_timeout_ms  bigint,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  constraint chain_name check (length(name) between 1 and 128),
  constraint chain_max_active_runs check (max_active_runs >= 1),
  constraint chain_run_timeout check (run_timeout_ms >= 1)
);
create table chains.job_chain_version (
  chain_id    uuid not null references chains.job_chain_definition,
  version     bigint not null,
  name        varchar(128) not null,
  description text,
  dag_json    jsonb not null,
  created_at  timestamptz not null default now(),
  created_by  text not null,
  primary key (chain_id, version)
);

-- One run. dag_json is the definition that it was started with, so a later version never changes a run under way; the runs
-- that a map node makes have no chain, and only this.
create table chains.job_run (
  run_id         uuid primary key,
  chain_id       uuid references chains.job_chain_definition,
  chain_version  bigint,
  job_id         varchar(64),
  job_name       varchar(128) not null,
  status         varchar(32) not null default 'PENDING',
  dag_json       jsonb not null,
  params         jsonb not null default '{}',
  op_time        varchar(255),
  priority       integer not null default 0,
  run_timeout_ms bigint,
  trigger        text not null,
  triggered_by   text not null,
  parent_run_id  uuid,
  parent_node_id varchar(64),
  depth          integer not null default 0,
  -- What a node asked for that waits for this run: its next attempt goes on with it only if it asks for the same.
  request        text,
  reason         text,
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  started_at     timestamptz,
  ended_at       timestamptz,
  constraint run_states check (status in ('PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'STOPPING', 'STOPPED')),
  constraint run_ended check ((ended_at is not null) = (status in ('SUCCESS', 'FAILED', 'STOPPED'))),
  constraint run_parent check ((parent_run_id is null) = (parent_node_id is null)),
  constraint run_version check ((chain_id is null) = (chain_version is null))
);
create index idx_job_run_chain_id on chains.job_run (chain_id, created_at desc);
create index idx_job_run_job_id on chains.job_run (job_id, created_at desc) where job_id is not null;
create index job_run_newest on chains.job_run (created_at desc, run_id);
create index job_run_op_time on chains.job_run (op_time, created_at desc) where op_time is not null;
create index job_run_failed on chains.job_run (status, created_at desc) where status in ('FAILED', 'STOPPED');
create index job_run_children on chains.job_run (parent_run_id, parent_node_id, created_at desc)
  where parent_run_id is not null;
create index job_run_live_children on chains.job_run (run_id)
  where parent_run_id is not null and status in ('PENDING', 'RUNNING');
-- Runs that wait to be admitted, chain by chain, and those that take up a chain's room.
create index job_run_queue on chains.job_run (chain_id, priority, created_at, run_id) where status = 'PENDING';
create index job_run_active on chains.job_run (chain_id) where status in ('RUNNING', 'STOPPING');

-- What people read about a node. No index but the key, so that its updates stay within the page (HOT) and leave nothing
-- for the indexes to forget. Nodes are made in one statement with their run, whose id they take from it, so a foreign key
-- would only check what cannot be otherwise, ten thousand times for a large run.
create table chains.job_run_node (
  run_id        uuid not null,
  node_id       varchar(64) not null,
  node_no       integer not null,
  status        varchar(32) not null default 'PENDING',
  attempt       integer not null default 0,
  last_error    text,
  artifact_json jsonb,
  started_at    timestamptz,
  ended_at      timestamptz,
  updated_at    timestamptz not null default now(),
  worker        text,
  progress      real,
  progress_note text,
  primary key (run_id, node_id),
  constraint node_states check (
    status in ('PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'RETRYING', 'SKIPPED', 'STOPPED')
  ),
  constraint node_ended check ((ended_at is not null) = (status in ('SUCCESS', 'FAILED', 'SKIPPED', 'STOPPED'))),
  constraint node_started check (status <> 'RUNNING' or (started_at is not null and attempt > 0))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);

-- Attempts that a later one has followed. The newest attempt of a node is in job_run_node itself.
create table chains.job_run_attempt (
  run_id     uuid not null references chains.job_run,
  node_id    varchar(64) not null,
  attempt    integer not null,
  status     varchar(32) not null,
  error      text,
  worker     text,
  started_at timestamptz not null,
  ended_at   timestamptz not null,
  primary key (run_id, node_id, attempt)
);

create table chains.job_run_checkpoint (
  run_id          uuid not null references chains.job_run,
  node_id         varchar(64) not null,
  checkpoint_json jsonb not null,
  updated_at      timestamptz not null default now(),
  primary key (run_id, node_id)
);

create table chains.job_run_log (
  id      bigint generated always as identity primary key,
  run_id  uuid not null,
  node_id varchar(64) not null,
  attempt integer not null,
  at      timestamptz not null,
  level   text not null,
  line    text not null
);
create index job_run_log_node on chains.job_run_log (run_id, node_id, id);

-- What happened to a run beside the plain course of its nodes, which their own times tell.
create table chains.job_run_event (
  id      bigint generated always as identity primary key,
  run_id  uuid not null references chains.job_run,
  at      timestamptz not null default now(),
  kind    text not null,
  node_id varchar(64),
  actor   text,
  detail  jsonb not null default '{}'
);
create index job_run_event_run on chains.job_run_event (run_id, id);

-- What the engine works on: a row for each run under way and for each of its nodes that has not ended. Both are gone when
-- they end, so their size follows the work in flight and never history. They come and go by the thousand, always together
-- and under the run's lock, so they do without foreign keys; `millrace doctor` looks for strays.
create table chains.live_run (
  run_id      uuid primary key references chains.job_run,
  status      text not null default 'RUNNING',
  open        integer not null,
  failed      integer not null,
  stopped     integer not null,
  timed_out   boolean not null default false,
  priority    integer not null,
  deadline_at timestamptz,
  grace_at    timestamptz,
  constraint live_run_states check (status in ('RUNNING', 'STOPPING')),
  constraint live_run_counts check (open >= 0 and failed >= 0 and stopped >= 0),
  constraint live_run_grace check ((status = 'STOPPING') = (grace_at is not null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);
create index live_run_deadline on chains.live_run (deadline_at) where deadline_at is not null;
create index live_run_grace_at on chains.live_run (grace_at) where grace_at is not null;

-- waiting, failed and skipped count the node's parents: those that have not ended, ended badly, were skipped. Tables that
-- it waits for count as parents too. `attempt` is the number of the try that runs or comes next, `tries` those that failed
-- since a person last said "again", `returned` those that came back without a result since one last had any: their worker
-- fell silent (`lost_count` in a row) or was shut down.
create table chains.live_node (
  run_id       uuid not null,
  node_id      varchar(64) not null,
  state        text not null,
  waiting      integer not null,
  failed       integer not null default 0,
  skipped      integer not null default 0,
  attempt      integer not null default 1,
  tries        integer not null default 0,
  lost_count   integer not null default 0,
  returned     integer not null default 0,
  priority     integer not null,
  pool         varchar(64),
  due_at       timestamptz,
  session_id   bigint,
  fence        bigint,
  child_run_id uuid,
  primary key (run_id, node_id),
  constraint live_node_states check (state in ('waiting', 'delayed', 'ready', 'leased', 'parked')),
  constraint live_node_held check ((state = 'leased') = (session_id is not null and fence is not null)),
  constraint live_node_due check (
    (state <> 'delayed' or due_at is not null) and (due_at is null or state in ('delayed', 'parked'))
  ),
  constraint live_node_child check ((state = 'parked') = (child_run_id is not null)),
  constraint live_node_counts check (waiting >= 0 and failed >= 0 and skipped >= 0 and attempt > 0)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);
create index live_node_ready on chains.live_node (priority, run_id, node_id) where state = 'ready' and pool is null;
create index live_node_pooled on chains.live_node (pool, priority, run_id, node_id) where state = 'ready' and pool is not null;
create index live_node_held on chains.live_node (session_id) where state = 'leased';
create index live_node_in_pool on chains.live_node (pool) where state = 'leased' and pool is not null;
create index live_node_due_at on chains.live_node (due_at) where due_at is not null;
create index live_node_parked on chains.live_node (child_run_id) where state = 'parked';

-- A run is changed by one transaction at a time. The lock comes first, and what it protects is read by the next statement: one
-- that waited for the lock would still see the rows as they were before it waited. Both in one call, because this is done
-- for every batch of reports, and a round trip costs more than the reading.
create function chains.open_live(runs uuid[], of_run uuid[], nodes text[])
returns table (
  run_id uuid, node_id varchar, state text, waiting integer, failed integer, skipped integer, attempt integer, tries integer,
  lost integer, returned integer, fence text, child_run_id uuid,
  run_status text, open integer, run_failed integer, stopped integer, timed_out boolean
) language plpgsql as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(hashtextextended('chains.run ' || r.id, 0))
  from (select id::text from unnest(runs) as u(id) order by 1 offset 0) r;
  return query
    select n.run_id, n.node_id, n.state, n.waiting, n.failed, n.skipped, n.attempt, n.tries, n.lost_count, n.returned,
           n.fence::text, n.child_run_id, r.status, r.open, r.failed, r.stopped, r.timed_out
    from (select * from unnest(of_run, nodes) as u(run_id, node_id) order by 1, 2 limit cardinality(of_run)) i
    join chains.live_run r on r.run_id = i.run_id
    join chains.live_node n on n.run_id = i.run_id and n.node_id = i.node_id;
end $$;

-- Tables that a node still waits for.
create table chains.live_wait (
  run_id     uuid not null,
  node_id    varchar(64) not null,
  table_name varchar(255) not null,
  op_time    varchar(255) not null,
  primary key (run_id, node_id, table_name)
);
create index live_wait_arrival on chains.live_wait (table_name, op_time);

-- How many nodes with this pool may run at once, over all processes. Counted from the leased rows themselves.
create table chains.pool (
  name       varchar(64) primary key,
  size       integer not null,
  updated_at timestamptz not null default now(),
  constraint pool_size check (size between 0 and 1000000)
);

create table chains.schedule (
  schedule_id uuid primary key,
  chain_id    uuid not null references chains.job_chain_definition,
  name        varchar(128) not null,
  cron        varchar(128) not null,
  time_zone   varchar(64) not null,
  missed      text not null,
  op_time     jsonb,
  params      jsonb not null default '{}',
  priority    integer not null default 0,
  paused      boolean not null default false,
  next_at     timestamptz,
  last_at     timestamptz,
  last_run_id uuid,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  unique (chain_id, name),
  constraint schedule_missed check (missed in ('skip', 'last', 'all'))
);
create index schedule_due on chains.schedule (next_at) where not paused and next_at is not null;

-- A start that was asked for with an Idempotency-Key; a repeat within a day is answered with the same run.
create table chains.start_key (
  chain_id   uuid not null references chains.job_chain_definition,
  key        varchar(255) not null,
  request    text not null,
  run_id     uuid not null,
  created_at timestamptz not null default now(),
  primary key (chain_id, key)
);
create index start_key_age on chains.start_key (created_at);
