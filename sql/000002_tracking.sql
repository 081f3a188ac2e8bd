-- Files and their shards on the way through four stages, with pull queues that stay flat as the table grows.

create schema tracking;

create table tracking.pipeline_file (
  filename   text primary key,
  created_at timestamptz not null default now()
);
create index pipeline_file_newest on tracking.pipeline_file (created_at desc, filename);

-- One row is one shard of a file. A stage begins only when the one before it is done, and done is final, so at most one
-- stage of a row is under way at any time: one worker, one leased_until and one lost_count serve all stages. Each stage
-- keeps its own fence, because the holder may repeat its finish after the next stage has begun.
create table tracking.pipeline_tracking (
  filename              text not null references tracking.pipeline_file,
  shard                 integer not null,
  event_ingest_status   text not null default 'started',
  shard_splitter_status text not null default 'new',
  shard_worker_status   text not null default 'new',
  mysql_sender_status   text not null default 'new',
  shard_splitter_fence  bigint,
  shard_worker_fence    bigint,
  mysql_sender_fence    bigint,
  leased_until          timestamptz,
  created_at            timestamptz not null default now(),
  updated_at            timestamptz not null default now(),
  lost_count            integer not null default 0,
  worker                text,
  last_error            text,
  primary key (filename, shard),
  constraint shard_range check (shard between 0 and 2147483647),
  constraint event_ingest_states check (event_ingest_status in ('started', 'done', 'failed')),
  constraint shard_splitter_states check (shard_splitter_status in ('new', 'started', 'done', 'failed')),
  constraint shard_worker_states check (shard_worker_status in ('new', 'started', 'done', 'failed')),
  constraint mysql_sender_states check (mysql_sender_status in ('new', 'started', 'done', 'failed')),
  constraint shard_splitter_order check (shard_splitter_status in ('new', 'failed') or event_ingest_status = 'done'),
  constraint shard_worker_order check (shard_worker_status in ('new', 'failed') or shard_splitter_status = 'done'),
  constraint mysql_sender_order check (mysql_sender_status in ('new', 'failed') or shard_worker_status = 'done'),
  constraint shard_splitter_fenced check (shard_splitter_fence is null or shard_splitter_status <> 'new'),
  constraint shard_worker_fenced check (shard_worker_fence is null or shard_worker_status <> 'new'),
  constraint mysql_sender_fenced check (mysql_sender_fence is null or mysql_sender_status <> 'new'),
  constraint lease_while_started check (
    leased_until is null
    or 'started' in (shard_splitter_status, shard_worker_status, mysql_sender_status)
  )
) with (
  -- Every move leaves a dead row behind. At ten million rows the defaults would let two million gather.
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_cost_delay = 1,
  autovacuum_analyze_scale_factor = 0.02
);

-- One queue per stage. Finished rows are in none of them, so their size follows the work that waits, not history.
create index shard_splitter_queue on tracking.pipeline_tracking (created_at, filename, shard)
  where event_ingest_status = 'done' and shard_splitter_status = 'new';
create index shard_worker_queue on tracking.pipeline_tracking (created_at, filename, shard)
  where shard_splitter_status = 'done' and shard_worker_status = 'new';
create index mysql_sender_queue on tracking.pipeline_tracking (created_at, filename, shard)
  where shard_worker_status = 'done' and mysql_sender_status = 'new';
create index leases on tracking.pipeline_tracking (leased_until) where leased_until is not null;
-- What a person looks for: on its way, or in trouble. A shard whose last stage is done has done them all.
create index pipeline_open on tracking.pipeline_tracking (filename) where mysql_sender_status <> 'done';
create index pipeline_failed on tracking.pipeline_tracking (filename) where
  'failed' in (event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status);

-- Exact totals without counting ten million rows: each change adds its difference here, in the same transaction. A
-- connection writes to one of sixteen slots, so that writers do not queue for one counter.
create table tracking.status_tally (
  slot                  smallint not null,
  event_ingest_status   text not null,
  shard_splitter_status text not null,
  shard_worker_status   text not null,
  mysql_sender_status   text not null,
  n                     bigint not null,
  primary key (slot, event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status)
) with (fillfactor = 50);
create table tracking.shard_tally (
  slot   smallint not null,
  shard  integer not null,
  total  bigint not null,
  done   bigint not null,
  failed bigint not null,
  primary key (slot, shard)
) with (fillfactor = 50);

create type tracking.cell_change as (
  event_ingest_status text, shard_splitter_status text, shard_worker_status text, mysql_sender_status text,
  shard integer, n integer
);

create function tracking.add_to_tallies() returns trigger language plpgsql as $$
declare
  my_slot constant smallint := pg_backend_pid() % 16;
  changes tracking.cell_change[];
begin
  if tg_op = 'INSERT' then
    select array_agg(row(event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status, shard, 1))
    into changes from new_rows;
  elsif tg_op = 'DELETE' then
    select array_agg(row(event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status, shard, -1))
    into changes from old_rows;
  else
    select array_agg(c) into changes from (
      select event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status, shard, sum(n)::integer
      from (select *, 1 as n from new_rows union all select *, -1 as n from old_rows) both_sides
      group by 1, 2, 3, 4, 5 having sum(n) <> 0
    ) c;
  end if;

  -- Sorted, so that two connections that share a slot take its counters in the same order and cannot deadlock.
  insert into tracking.status_tally as tally
  select my_slot, event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status, sum(n)
  from unnest(changes) group by 2, 3, 4, 5 order by 2, 3, 4, 5
  on conflict (slot, event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status)
  do update set n = tally.n + excluded.n;

  insert into tracking.shard_tally as tally
  select my_slot, shard, total, done, failed
  from (
    select shard, sum(n) as total,
           coalesce(sum(n) filter (where mysql_sender_status = 'done'), 0) as done,
           coalesce(sum(n) filter (where mysql_sender_status = 'failed'), 0) as failed
    from unnest(changes) group by shard
  ) per_shard
  where total <> 0 or done <> 0 or failed <> 0
  order by shard
  on conflict (slot, shard)
  do update set total = tally.total + excluded.total, done = tally.done + excluded.done, failed = tally.failed + excluded.failed;
  return null;
end $$;

create trigger tally_inserted after insert on tracking.pipeline_tracking
  referencing new table as new_rows for each statement execute function tracking.add_to_tallies();
create trigger tally_updated after update on tracking.pipeline_tracking
  referencing old table as old_rows new table as new_rows for each statement execute function tracking.add_to_tallies();
create trigger tally_deleted after delete on tracking.pipeline_tracking
  referencing old table as old_rows for each statement execute function tracking.add_to_tallies();
