-- Lineage of many tenants: raw events, the asset graph that follows from them, and the tasks that describe and embed assets.

create schema if not exists lineage;

create table lineage.tenant (
  id                    bigint primary key,
  code                  text not null unique,
  name                  text not null,
  state                 text not null default 'NEW',
  cutover_time          timestamptz,
  rate_limit_per_minute integer,
  body_limit_bytes      integer,
  -- What embeds and summarises this tenant's assets. Chosen by the tenant; without one nothing is sent anywhere.
  model                 jsonb,
  created_at            timestamptz not null default now(),
  updated_at            timestamptz not null default now(),
  constraint tenant_id check (id >= 0),
  constraint tenant_code check (length(code) between 1 and 64),
  constraint tenant_name check (length(name) between 1 and 128),
  constraint tenant_state check (state in ('NEW', 'SYNCING', 'READY')),
  constraint tenant_cutover check (state <> 'SYNCING' or cutover_time is not null)
);

-- `event` is of the type json, not jsonb: it keeps the exact text, with the order of its keys. Partitioned by the time of
-- arrival, because an event may tell of any time at all and retention is by arrival.
create table lineage.lineage_events (
  id            bigint generated always as identity,
  tenant_id     bigint not null,
  tenant_code   text not null,
  tenant_name   text not null,
  event_time    timestamptz not null,
  event_type    text,
  run_uuid      uuid,
  job_name      text,
  job_namespace text,
  producer      text,
  _event_type   text not null default 'RUN_EVENT',
  event         json not null,
  created_at    timestamptz not null default now(),
  source        text not null,
  -- Null while it is buffered.
  telling       uuid,
  -- Of a full sync: what it does not list is gone.
  baseline      boolean not null default false,
  apply_state   text not null,
  apply_error   text,
  primary key (id, created_at),
  constraint lineage_events_kind check (_event_type in ('RUN_EVENT', 'DATASET_EVENT', 'JOB_EVENT')),
  constraint lineage_events_source check (source in ('GRAVITINO', 'COMPUTE_ENGINE')),
  constraint lineage_events_state check (apply_state in ('APPLIED', 'BUFFERED', 'SKIPPED', 'DEAD'))
) partition by range (created_at);
-- Where a month has no partition of its own yet.
create table lineage.lineage_events_default partition of lineage.lineage_events default;
create index idx_le_tenant_time on lineage.lineage_events (tenant_id, event_time desc);
create index idx_le_tenant_event_type_time on lineage.lineage_events (tenant_id, _event_type, event_time desc);
create index idx_le_tenant_run_time on lineage.lineage_events (tenant_id, run_uuid, event_time desc);
-- By the beginning of the names: an index takes no more than 2,704 bytes, and a job may be named by its whole statement.
create index idx_le_tenant_job_time on lineage.lineage_events
  (tenant_id, left(job_namespace, 128), left(job_name, 128), event_time desc);
create index idx_le_created_at on lineage.lineage_events (created_at desc);
create index idx_le_telling on lineage.lineage_events (telling, tenant_id, event_time desc) where telling is not null;
create index idx_le_unapplied on lineage.lineage_events (tenant_id, apply_state, event_time, id)
  where apply_state in ('BUFFERED', 'DEAD');
-- Bodies compress four times as fast with lz4; a server that was built without it keeps its own default.
do $$
begin
  alter table lineage.lineage_events alter column event set compression lz4;
  alter table lineage.lineage_events_default alter column event set compression lz4;
exception when feature_not_supported then null;
end $$;

-- The fingerprints of the events that were taken, apart from them: the key of a partitioned table would need the time of arrival.
create table lineage.event_key (
  tenant_id bigint not null,
  key       uuid not null,
  event_id  bigint not null,
  seen_at   timestamptz not null default now(),
  primary key (tenant_id, key)
);
create index event_key_seen on lineage.event_key using brin (seen_at);

-- What an event tells, apart from when it was and in which run: the same for every run of a job that has not changed. The
-- graph follows from the tellings and their times, so an event that tells what is known costs one narrow row here.
create table lineage.telling (
  tenant_id  bigint not null references lineage.tenant,
  key        uuid not null,
  last_at    bigint not null,
  -- Whether its next event has to be applied although it tells nothing new: the graph says something else by now.
  in_full    boolean not null,
  -- The statement or job whose executions its events count.
  process_id bigint,
  primary key (tenant_id, key)
) with (fillfactor = 80);

-- Times of a telling before its last one that matter: what it told before a rename was told of another asset.
create table lineage.telling_time (
  tenant_id bigint not null,
  key       uuid not null,
  at        bigint not null,
  primary key (tenant_id, key, at)
);

-- One event of each telling, apart from the row that changes. Retention takes no event from here.
create table lineage.telling_event (
  tenant_id bigint not null,
  key       uuid not null,
  event     json not null,
  source    text not null,
  baseline  boolean not null,
  primary key (tenant_id, key)
);

-- Which tellings name an asset, or something below it, by the name that they use. When a name turns out to have meant
-- another asset, or none, what was told under it is read again.
create table lineage.mention (
  tenant_id bigint not null,
  key       uuid not null,
  telling   uuid not null,
  primary key (tenant_id, key, telling)
);
create index mention_telling on lineage.mention (telling, tenant_id);

-- One index of a table begins with the tenant, and no more: of two that do, a plan that was made while the table was small may
-- take the wrong one, and read all of the tenant for each row.

-- An asset. Times of events are microseconds since 1970. `times` holds, for each attribute, the time of the event that set it.
create table lineage.node (
  tenant_id  bigint not null references lineage.tenant,
  id         bigint generated always as identity,
  kind       text not null,
  key        uuid not null,
  path       text[] not null,
  name       text not null,
  parent_id  bigint,
  attributes jsonb not null default '{}',
  times      jsonb not null default '{}',
  -- Tellings contradict each other about it again and again: each of their events is applied, so that the newest wins.
  contested  boolean not null default false,
  words      tsvector not null default '',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  primary key (tenant_id, id),
  unique (key, tenant_id),
  foreign key (tenant_id, parent_id) references lineage.node (tenant_id, id),
  constraint node_kind check (kind in ('CATALOG', 'SCHEMA', 'TABLE', 'COLUMN', 'SQL', 'JOB', 'METRIC', 'WORDROOT', 'MODIFIER',
    'UNIT', 'VALUEDOMAIN', 'TAG'))
);
create index node_children on lineage.node (parent_id, tenant_id, kind) where parent_id is not null;
create index node_kind_name on lineage.node (tenant_id, kind, left(name, 128), id) where deleted_at is null;
create index node_words on lineage.node using gin (words) where deleted_at is null;

-- Both ends carry the tenant of the edge, so that an edge between two tenants cannot be written.
create table lineage.edge (
  tenant_id       bigint not null,
  src             bigint not null,
  kind            text not null,
  dst             bigint not null,
  transformations text[] not null default '{}',
  first_at        bigint not null,
  primary key (tenant_id, src, kind, dst),
  foreign key (tenant_id, src) references lineage.node (tenant_id, id) on delete cascade,
  foreign key (tenant_id, dst) references lineage.node (tenant_id, id) on delete cascade,
  constraint edge_kind check (kind in ('INPUT_OF', 'OUTPUT_TO', 'DERIVES_FROM', 'MEASURES', 'FILTERS_BY', 'DERIVED_FROM',
    'COMPUTED_FROM', 'HAS_VALUE_DOMAIN', 'HAS_TAG'))
);
create index edge_into on lineage.edge (dst, tenant_id, kind, src);

-- From `at` on a name no longer means what it meant before: that was dropped, has another name, or made room for another. Of a
-- table `listed` says that a full sync found these columns and no others.
create table lineage.ending (
  tenant_id bigint not null references lineage.tenant,
  key       uuid not null,
  at        bigint not null,
  kind      text not null,
  -- The name itself, of which `key` is the hash.
  name_kind text not null,
  path      text[] not null,
  to_path   text[],
  to_key    uuid,
  columns   text[],
  -- The asset that mentions have: of a column its table, of anything else itself.
  subject   uuid not null,
  -- Of two new names that one thing was given at one moment both are kept, and the first of them in order holds.
  constraint ending_once unique nulls not distinct (tenant_id, key, at, kind, to_key),
  constraint ending_kind check (kind in ('dropped', 'renamed', 'replaced', 'listed')),
  constraint ending_to check ((kind = 'renamed') = (to_path is not null and to_key is not null)),
  constraint ending_columns check ((kind = 'listed') = (columns is not null))
);
create index ending_subject on lineage.ending (subject, tenant_id, at);
create index ending_into on lineage.ending (to_key, tenant_id) where to_key is not null;

-- Another name of a table, told by a symlink: a location, mostly. `at` is the time of the first event that told it.
create table lineage.alias (
  tenant_id bigint not null references lineage.tenant,
  key       uuid not null,
  to_path   text[] not null,
  to_key    uuid not null,
  at        bigint not null,
  primary key (tenant_id, key)
);
create index alias_into on lineage.alias (to_key, tenant_id);

-- Which runs have executed a statement or job, so that one that starts, runs and completes counts once. Without a foreign key:
-- to check it would lock the statement's row at every run, and statements are never deleted.
create table lineage.execution (
  tenant_id  bigint not null,
  node_id    bigint not null,
  run_uuid   uuid not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, node_id, run_uuid)
);
create index execution_created on lineage.execution using brin (created_at);
create table lineage.execution_count (
  tenant_id  bigint not null,
  node_id    bigint not null,
  executions bigint not null,
  last_at    bigint not null,
  primary key (tenant_id, node_id),
  foreign key (tenant_id, node_id) references lineage.node (tenant_id, id) on delete cascade
) with (fillfactor = 80);

-- The seed's relationships as one list: what follows from the tree of assets, and what was told.
create view lineage.relationship as
  select tenant_id, src, kind, dst from lineage.edge
  union all
  select c.tenant_id, c.parent_id, 'HAS_' || c.kind, c.id
  from lineage.node c where c.parent_id is not null and c.deleted_at is null;

-- What is computed of an asset after the event was acknowledged, apart from the asset: neither rewrites the other.
create table lineage.embedding (
  tenant_id         bigint not null,
  node_id           bigint not null,
  model_fingerprint text not null,
  content_hash      text not null,
  dimension         integer not null,
  vector            real[] not null,
  provider          text not null,
  updated_at        timestamptz not null default now(),
  primary key (tenant_id, node_id),
  foreign key (tenant_id, node_id) references lineage.node (tenant_id, id) on delete cascade,
  constraint embedding_dimension check (cardinality(vector) = dimension)
);
create table lineage.summary (
  tenant_id         bigint not null,
  node_id           bigint not null,
  model_fingerprint text not null,
  content_hash      text not null,
  summary           text not null,
  tags              text[] not null default '{}',
  generated_at      timestamptz not null default now(),
  primary key (tenant_id, node_id),
  foreign key (tenant_id, node_id) references lineage.node (tenant_id, id) on delete cascade
);

create table lineage.ol_async_task (
  id                bigint generated always as identity primary key,
  task_type         text not null,
  tenant_id         bigint not null references lineage.tenant,
  tenant_code       text not null,
  resource_type     text not null,
  resource_id       text not null,
  content_hash      char(64) not null,
  model_fingerprint text not null,
  status            text not null default 'PENDING',
  priority          integer not null default 100,
  retry_count       integer not null default 0,
  max_retry         integer not null default 5,
  next_run_at       timestamptz not null default now(),
  claim_token       text,
  claim_until       timestamptz,
  last_error        text,
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now(),
  constraint uq_task_dedup unique (task_type, tenant_id, resource_type, resource_id, model_fingerprint, content_hash),
  constraint ol_async_task_type check (task_type in ('EMBEDDING', 'SQL_SUMMARY')),
  constraint ol_async_task_status check (status in ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'DEAD', 'CANCELED')),
  constraint ol_async_task_claim check ((status = 'RUNNING') = (claim_token is not null and claim_until is not null))
);
-- Only what is still to do: the seed's index over all states would grow with history.
create index idx_task_poll on lineage.ol_async_task (tenant_id, task_type, model_fingerprint, next_run_at, priority, id)
  where status in ('PENDING', 'FAILED');
create index idx_task_running on lineage.ol_async_task (claim_until) where status = 'RUNNING';
create index idx_task_tenant on lineage.ol_async_task (tenant_id, task_type, status, next_run_at);

create table lineage.ol_async_task_attempt (
  id            bigint generated always as identity primary key,
  task_id       bigint not null references lineage.ol_async_task on delete cascade,
  attempt_no    integer not null,
  worker_id     text not null,
  started_at    timestamptz not null,
  finished_at   timestamptz,
  status        text not null,
  batch_no      text,
  input_size    integer,
  latency_ms    bigint,
  error_type    text,
  error_message text,
  created_at    timestamptz not null default now(),
  constraint ol_async_task_attempt_status check (status in ('RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED'))
);
create index idx_attempt_task on lineage.ol_async_task_attempt (task_id, attempt_no);
create index idx_attempt_batch on lineage.ol_async_task_attempt (batch_no);

create table lineage.ol_async_batch (
  id                bigint generated always as identity primary key,
  batch_no          text not null,
  task_type         text not null,
  tenant_id         bigint not null,
  model_fingerprint text not null,
  worker_id         text not null,
  planned_size      integer not null,
  success_count     integer not null default 0,
  failed_count      integer not null default 0,
  started_at        timestamptz not null,
  finished_at       timestamptz,
  status            text not null,
  created_at        timestamptz not null default now(),
  constraint uq_batch_no unique (batch_no),
  constraint ol_async_batch_status check (status in ('RUNNING', 'SUCCEEDED', 'FAILED'))
);
create index idx_batch_tenant_type_time on lineage.ol_async_batch (tenant_id, task_type, created_at desc);

-- Makes the partition of a month, if it can be made. Where events of that month have come to the default one already, they
-- stay there, and so do those that follow. Months are those of UTC, whatever the time zone of the session. Neither function
-- waits for others long, since everyone who sends events would wait behind it: the next run tries again.
create function lineage.ensure_month(month date) returns boolean language plpgsql
  set timezone = 'UTC' set lock_timeout = '1s' as $$
declare
  first date := date_trunc('month', month);
begin
  perform pg_advisory_xact_lock(hashtext('lineage.ensure_month'));
  execute format('create table if not exists lineage.%I partition of lineage.lineage_events for values from (%L) to (%L)',
    'lineage_events_' || to_char(first, 'YYYY_MM'), first::timestamptz, (first + interval '1 month')::timestamptz);
  return true;
exception when check_violation or invalid_object_definition or lock_not_available then
  return false;
end $$;

-- Drops the partitions whose last event is older than a time, but none with events that still wait to be applied; returns how many.
create function lineage.drop_months_before(moment timestamptz) returns integer language plpgsql
  set timezone = 'UTC' set lock_timeout = '1s' as $$
declare
  part record;
  waiting boolean;
  dropped integer := 0;
begin
  perform pg_advisory_xact_lock(hashtext('lineage.ensure_month'));
  for part in
    select c.oid::regclass as name, to_date(right(c.relname, 7), 'YYYY_MM') as first
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'lineage.lineage_events'::regclass and c.relname ~ '^lineage_events_\d{4}_\d{2}$'
  loop
    if (part.first + interval '1 month')::timestamptz <= moment then
      execute format('select exists (select from %s where apply_state in (''BUFFERED'', ''DEAD''))', part.name) into waiting;
      if not waiting then
        execute format('drop table %s', part.name);
        dropped := dropped + 1;
      end if;
    end if;
  end loop;
  return dropped;
exception when lock_not_available then
  return 0;
end $$;
