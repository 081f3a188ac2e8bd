-- Harvest: the sources and how to read them, and what is being read: plans, slices, tasks, runs, batches, cursors, records.

create schema harvest;

-- The code space that definitions are checked against.
create table harvest.sys_dict_type (
  type_code   text primary key,
  description text not null
);
create table harvest.sys_dict_item (
  type_code   text not null references harvest.sys_dict_type,
  item_code   text not null,
  description text not null default '',
  primary key (type_code, item_code)
);
create table harvest.sys_dict_item_alias (
  type_code  text not null,
  alias_code text not null,
  item_code  text not null,
  primary key (type_code, alias_code),
  foreign key (type_code, item_code) references harvest.sys_dict_item
);

-- spec/dictionary.ts has the same codes.
with known (type_code, description, codes) as (values
  ('http_method', 'Methods of requests', '{GET,POST,HEAD}'),
  ('endpoint_role', 'What an endpoint answers: lists, or the records of ids', '{SEARCH,DETAIL}'),
  ('auth_type', 'Kinds of authentication', '{NONE,API_KEY,BEARER,OAUTH2,CUSTOM}'),
  ('auth_location', 'Where a credential is sent', '{HEADER,QUERY,BODY}'),
  ('pagination_type', 'How an endpoint is paged', '{OFFSET,PAGE,TOKEN,URL,TIME}'),
  ('token_class', 'How often and how long a token of a page can be used', '{REPEATABLE,SINGLE_USE,EXPIRING}'),
  ('enumerator', 'How the records of an endpoint are found', '{SearchByDateRange,ScanByCursor,TwoPhase,NoCount,ExistingSet}'),
  ('protocol_family', 'Sources that report errors alike', '{REST_JSON,NCBI,OAI}'),
  ('response_format', 'Formats of bodies', '{JSON,XML}'),
  ('updated_at_format', 'How records write their time of change', '{iso,epochMs,epochSeconds,parts}'),
  ('window_align', 'What windows are aligned to', '{min,hour,day}'),
  ('param_location', 'Where a parameter is sent', '{QUERY,HEADER,BODY,PATH}'),
  ('field_type', 'Types of output fields', '{string,integer,number,boolean,date,timestamp,json}'),
  ('classifier_action', 'What follows from an answer', '{RETRY,RATE_LIMITED,IGNORE_EMPTY,RESTART_SLICE,SPLIT_SLICE,FAIL}'),
  ('error_level', 'Levels of errors', '{L1,L2,L3,L4}'),
  ('null_policy', 'What becomes of a parameter without a value', '{omit,empty}'),
  ('quota_unit', 'What a quota counts', '{requests,credits,usd_micros}'),
  ('landing_grain', 'Grains of tables in the lake', '{hour,day}'),
  ('body_retention', 'Which bodies of responses are kept', '{all,failures,none}'),
  ('ing_operation', 'Operations of plans', '{HARVEST,BACKFILL,UPDATE}'),
  ('ing_cursor_type', 'What a cursor counts', '{TIME,ID,TOKEN}'),
  ('ing_cursor_direction', 'Directions of cursors', '{FORWARD,BACKFILL}'),
  ('ing_namespace_scope', 'What a cursor is kept for', '{GLOBAL,EXPR,CUSTOM}')
), types as (
  insert into harvest.sys_dict_type (type_code, description) select type_code, description from known
)
insert into harvest.sys_dict_item (type_code, item_code) select type_code, unnest(codes::text[]) from known;

-- A source. base_url_override points it at a mirror, a proxy or a simulator. revision grows with each change of its definition.
create table harvest.reg_provenance (
  provenance_code   text primary key,
  name              text not null,
  description       text not null default '',
  base_url          text not null,
  base_url_override text,
  defaults          jsonb not null default '{}',
  revision          integer not null default 1,
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now(),
  updated_by        text not null,
  constraint provenance_code check (provenance_code ~ '^[a-z][a-z0-9_-]{0,62}$')
);

-- An endpoint is never deleted once it has records: removed_at hides it, and the records keep their place.
create table harvest.reg_prov_endpoint_def (
  endpoint_id     integer generated always as identity primary key,
  provenance_code text not null references harvest.reg_provenance on delete cascade,
  endpoint_name   text not null,
  role_code       text not null,
  http_method     text not null,
  path_template   text not null,
  is_default      boolean not null default false,
  requires_auth   boolean not null default false,
  detail_endpoint text,
  overrides       jsonb not null default '{}',
  removed_at      timestamptz,
  unique (provenance_code, endpoint_name),
  constraint endpoint_name check (endpoint_name ~ '^[a-z][a-z0-9_-]{0,62}$')
);

-- One table for each section of a policy; cfg is that section. They are the fourth layer, above the endpoint's overrides.
create table harvest.reg_prov_http_cfg (
  endpoint_id integer primary key references harvest.reg_prov_endpoint_def on delete cascade,
  cfg         jsonb not null
);
create table harvest.reg_prov_pagination_cfg (like harvest.reg_prov_http_cfg including all,
  foreign key (endpoint_id) references harvest.reg_prov_endpoint_def on delete cascade);
create table harvest.reg_prov_window_offset_cfg (like harvest.reg_prov_http_cfg including all,
  foreign key (endpoint_id) references harvest.reg_prov_endpoint_def on delete cascade);
create table harvest.reg_prov_retry_cfg (like harvest.reg_prov_http_cfg including all,
  foreign key (endpoint_id) references harvest.reg_prov_endpoint_def on delete cascade);
create table harvest.reg_prov_rate_limit_cfg (like harvest.reg_prov_http_cfg including all,
  foreign key (endpoint_id) references harvest.reg_prov_endpoint_def on delete cascade);
create table harvest.reg_prov_batching_cfg (like harvest.reg_prov_http_cfg including all,
  foreign key (endpoint_id) references harvest.reg_prov_endpoint_def on delete cascade);
create table harvest.reg_prov_expr_capability (like harvest.reg_prov_http_cfg including all,
  foreign key (endpoint_id) references harvest.reg_prov_endpoint_def on delete cascade);
create table harvest.reg_prov_expr_render_rule (like harvest.reg_prov_http_cfg including all,
  foreign key (endpoint_id) references harvest.reg_prov_endpoint_def on delete cascade);
create table harvest.reg_expr_field_dict (like harvest.reg_prov_http_cfg including all,
  foreign key (endpoint_id) references harvest.reg_prov_endpoint_def on delete cascade);
create table harvest.reg_prov_api_param_map (
  endpoint_id integer not null references harvest.reg_prov_endpoint_def on delete cascade,
  param_no    integer not null,
  param_name  text not null,
  cfg         jsonb not null,
  primary key (endpoint_id, param_no)
);

-- A reference to a secret, never its value. version grows when the keyed hash of the value changes.
create table harvest.reg_prov_credential (
  credential_id   integer generated always as identity primary key,
  provenance_code text not null references harvest.reg_provenance on delete cascade,
  credential_name text not null,
  kind            text not null,
  reference       text not null,
  version         integer not null default 0,
  value_hash      text,
  checked_at      timestamptz,
  unique (provenance_code, credential_name),
  constraint credential_kind check (kind in ('env', 'secret'))
);

-- When a source is harvested by itself.
create table harvest.ing_schedule (
  schedule_id     integer generated always as identity primary key,
  provenance_code text not null references harvest.reg_provenance on delete cascade,
  schedule_name   text not null,
  endpoint_name   text not null,
  operation_code  text not null,
  cron            text not null,
  time_zone       text not null,
  params          jsonb not null default '{}',
  priority        integer,
  next_at         timestamptz,
  paused_at       timestamptz,
  unique (provenance_code, schedule_name)
);
create index schedule_due on harvest.ing_schedule (next_at) where paused_at is null;

-- A trigger. record_remarks says what it led to, or why it led to nothing.
create table harvest.ing_schedule_instance (
  schedule_instance_id uuid primary key,
  scheduler_code       text not null,
  scheduler_job_id     text,
  scheduler_log_id     text,
  provenance_code      text not null,
  endpoint_name        text not null,
  operation_code       text not null,
  trigger_type_code    text not null,
  trigger_params       jsonb not null,
  expr_proto_hash      text,
  record_remarks       jsonb not null default '{}',
  created_at           timestamptz not null default now(),
  created_by           text not null,
  constraint schedule_instance_fire unique (scheduler_code, scheduler_job_id, scheduler_log_id)
);
create index schedule_instance_time on harvest.ing_schedule_instance (provenance_code, created_at desc);

-- Compiled snapshots by fingerprint.
create table harvest.snapshot (
  spec_fingerprint text primary key,
  snapshot         jsonb not null,
  origins          jsonb not null,
  created_at       timestamptz not null default now()
);

-- A plan: one trigger's window of one endpoint. plan_month partitions what grows below it.
create table harvest.ing_plan (
  plan_id              uuid primary key,
  schedule_instance_id uuid not null references harvest.ing_schedule_instance,
  provenance_code      text not null,
  endpoint_id          integer not null references harvest.reg_prov_endpoint_def,
  endpoint_name        text not null,
  operation_code       text not null,
  window_from          timestamptz,
  window_to            timestamptz,
  plan_strategy        text not null,
  spec_fingerprint     text not null references harvest.snapshot,
  expr_proto_hash      text not null,
  namespace_scope_code text not null,
  namespace_key        text not null,
  priority             integer not null,
  planned_at           timestamptz not null,
  plan_month           date not null,
  status_code          text not null default 'DRAFT',
  unsliced_from        timestamptz,
  record_remarks       jsonb not null default '{}',
  created_at           timestamptz not null default now(),
  ended_at             timestamptz,
  constraint plan_states check (status_code in ('DRAFT', 'SLICING', 'READY', 'PARTIAL', 'FAILED', 'COMPLETE', 'CANCELLED')),
  constraint plan_window check (window_from < window_to),
  constraint plan_partial check ((status_code = 'PARTIAL') = (unsliced_from is not null)),
  constraint plan_ended check ((status_code in ('FAILED', 'COMPLETE', 'CANCELLED')) = (ended_at is not null))
);
-- For pages, the newest first: ids are in the order of time.
create index plan_src on harvest.ing_plan (provenance_code, plan_id);
create index plan_not_done on harvest.ing_plan (status_code, plan_id) where status_code <> 'COMPLETE';
-- For the newest plan of an endpoint.
create index plan_endpoint on harvest.ing_plan (endpoint_id, plan_id);
create index plan_open on harvest.ing_plan (endpoint_id, window_from) where ended_at is null;
create index plan_to_slice on harvest.ing_plan (priority, created_at) where status_code in ('DRAFT', 'SLICING', 'PARTIAL');

-- The unit of parallel work and of completeness. generation grows when it starts again from its first page; position is where
-- the next page begins. expected is what the source announced; received, quarantined and missing are what came in this generation,
-- by distinct id. The other counts are over all generations. A gap that stays can be accepted, and the watermark then passes it.
create table harvest.ing_plan_slice (
  slice_id             bigint generated always as identity primary key,
  plan_id              uuid not null references harvest.ing_plan,
  parent_slice_id      bigint,
  slice_no             integer not null,
  provenance_code      text not null,
  endpoint_id          integer not null,
  operation_code       text not null,
  namespace_scope_code text not null,
  namespace_key        text not null,
  window_from          timestamptz,
  window_to            timestamptz,
  slice_spec           jsonb not null,
  slice_signature_hash text not null,
  expr_hash            text not null,
  expr_snapshot        jsonb not null,
  status_code          text not null default 'READY',
  generation           integer not null default 1,
  batches              integer not null default 0,
  position             jsonb,
  position_at          timestamptz,
  expected             bigint,
  received             bigint not null default 0,
  inserted             bigint not null default 0,
  updated              bigint not null default 0,
  unchanged            bigint not null default 0,
  deleted              bigint not null default 0,
  quarantined          bigint not null default 0,
  missing              bigint not null default 0,
  reason               text,
  accepted_at          timestamptz,
  accepted_by          text,
  accepted_reason      text,
  created_at           timestamptz not null default now(),
  ended_at             timestamptz,
  constraint slice_signature unique (plan_id, slice_signature_hash),
  constraint slice_states check (status_code in ('READY', 'FAILED', 'COMPLETE', 'INCOMPLETE', 'SPLIT', 'CANCELLED')),
  constraint slice_window check (window_from < window_to),
  constraint slice_ended check ((status_code = 'READY') = (ended_at is null)),
  constraint slice_reason check (status_code not in ('FAILED', 'INCOMPLETE') or reason is not null),
  constraint slice_accepted check ((accepted_at is null) = (accepted_by is null) and (accepted_at is null) = (accepted_reason is null)
    and (accepted_at is null or status_code in ('FAILED', 'INCOMPLETE')))
);
create index slice_status on harvest.ing_plan_slice (plan_id, status_code);
create index slice_number on harvest.ing_plan_slice (plan_id, slice_no);
-- For the watermark: the slices of a namespace in the order of time.
create index slice_timeline on harvest.ing_plan_slice
  (endpoint_id, operation_code, namespace_scope_code, namespace_key, window_from) where window_from is not null;

-- For cursors: the gaps that were accepted.
create index slice_accepted_gap on harvest.ing_plan_slice (endpoint_id, namespace_key) where accepted_at is not null;

-- For landing: all slices of a window.
create index slice_window on harvest.ing_plan_slice (endpoint_id, window_from) where window_from is not null;

-- What the queue is fair between: source, endpoint and operation. concurrency is the number of its tasks that run at once.
create table harvest.ing_partition (
  partition_key text primary key,
  concurrency   integer not null default 8,
  constraint partition_concurrency check (concurrency > 0)
);

-- The queue. At most one active task a slice. A claim goes from QUEUED to EXECUTING, and its run is inserted with it.
-- wait_gate is the rate gate that it waits for, so that it goes on when that is opened.
-- failed_tries counts the runs in a row that failed and committed no page, by which the next one waits.
create table harvest.ing_task (
  task_id              bigint generated always as identity primary key,
  schedule_instance_id uuid not null,
  plan_id              uuid not null references harvest.ing_plan,
  slice_id             bigint not null references harvest.ing_plan_slice,
  provenance_code      text not null,
  operation_code       text not null,
  partition_key        text not null,
  credential_id        integer,
  params               jsonb not null,
  expr_hash            text not null,
  idempotent_key       text not null unique,
  status_code          text not null default 'QUEUED',
  priority             integer not null,
  scheduled_at         timestamptz,
  lost_count           integer not null default 0,
  attempt_count        integer not null default 0,
  failed_tries         integer not null default 0,
  session_id           bigint,
  fence                bigint,
  wait_reason          text,
  wait_gate            text,
  last_error           text,
  created_at           timestamptz not null default now(),
  started_at           timestamptz,
  finished_at          timestamptz,
  constraint task_states check (status_code in
    ('QUEUED', 'EXECUTING', 'SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED')),
  constraint task_held check ((status_code = 'EXECUTING') = (session_id is not null and fence is not null)),
  constraint task_queued check ((status_code = 'QUEUED') = (scheduled_at is not null)),
  constraint task_finished check ((status_code in ('SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED')) = (finished_at is not null))
);
-- By finished_at, not by state: while statistics know of no task that is queued, the planner would read all of this index for
-- each claim.
create unique index task_active on harvest.ing_task (slice_id) where finished_at is null;
create index task_queue on harvest.ing_task (partition_key, priority, scheduled_at, task_id) where status_code = 'QUEUED';
-- For the next task that will be due: in the queue it may be behind any number of others.
create index task_due on harvest.ing_task (partition_key, scheduled_at) where status_code = 'QUEUED';
create index task_held_by on harvest.ing_task (session_id) where status_code = 'EXECUTING';
create index task_running on harvest.ing_task (partition_key) where status_code = 'EXECUTING';
create index task_wait_gate on harvest.ing_task (wait_gate) where wait_gate is not null;
create index task_slice on harvest.ing_task (slice_id);
create index task_plan on harvest.ing_task (plan_id, task_id);
-- For pages, the newest first.
create index task_partition on harvest.ing_task (partition_key, task_id);
create index task_not_done on harvest.ing_task (task_id) where status_code in ('FAILED', 'PARTIAL', 'CANCELLED');

-- One attempt to execute a task. A run whose process was lost is ended by the next claim of its task.
create table harvest.ing_task_run (
  run_id          bigint generated always as identity primary key,
  task_id         bigint not null references harvest.ing_task,
  attempt_no      integer not null,
  provenance_code text not null,
  operation_code  text not null,
  window_from     timestamptz,
  window_to       timestamptz,
  status_code     text not null default 'RUNNING',
  checkpoint      jsonb,
  stats           jsonb not null default '{}',
  error           text,
  started_at      timestamptz not null default now(),
  ended_at        timestamptz,
  unique (task_id, attempt_no),
  constraint run_states check (status_code in ('RUNNING', 'SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED')),
  constraint run_ended check ((status_code = 'RUNNING') = (ended_at is null))
);
create index run_task on harvest.ing_task_run (task_id, attempt_no desc);

-- What a failed request answered.
create table harvest.request_failure (
  run_id      bigint not null references harvest.ing_task_run,
  failure_no  integer not null,
  request     jsonb not null,
  status      integer,
  action_code text not null,
  reason      text not null,
  body_hash   text,
  created_at  timestamptz not null default now(),
  primary key (run_id, failure_no)
);

-- A page of a slice, committed. Its identity is slice, generation and number, never the token: a source may repeat one token.
-- change_xid finds the records that it changed, id_hashes the ids that it brought, 8 bytes each.
create table harvest.ing_task_run_batch (
  plan_month         date not null,
  slice_id           bigint not null,
  generation         integer not null,
  batch_no           integer not null,
  run_id             bigint not null,
  task_id            bigint not null,
  plan_id            uuid not null,
  endpoint_id        integer not null,
  expr_hash          text not null,
  phase              smallint not null,
  page_no            integer,
  page_size          integer,
  before_token       text,
  after_token        text,
  next_url           text,
  request            jsonb not null,
  response_digest    jsonb not null,
  stats              jsonb not null,
  credential_version integer,
  body_hash          text,
  id_hashes          bytea not null,
  change_xid         xid8 not null default pg_current_xact_id(),
  status_code        text not null default 'SUCCEEDED',
  created_at         timestamptz not null default now(),
  primary key (plan_month, slice_id, generation, batch_no),
  constraint batch_states check (status_code = 'SUCCEEDED')
) partition by range (plan_month);
create index batch_run on harvest.ing_task_run_batch (run_id, batch_no);

-- How far a namespace is harvested without a gap.
create table harvest.ing_cursor (
  provenance_code      text not null,
  operation_code       text not null,
  cursor_key           text not null,
  namespace_scope_code text not null,
  namespace_key        text not null,
  cursor_type_code     text not null,
  cursor_value         text not null,
  normalized_instant   timestamptz,
  normalized_numeric   numeric,
  observed_max_value   text,
  plan_id              uuid not null,
  slice_id             bigint not null,
  generation           integer not null,
  expr_hash            text not null,
  updated_at           timestamptz not null default now(),
  primary key (provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key),
  constraint cursor_scope check (namespace_scope_code in ('GLOBAL', 'EXPR', 'CUSTOM')),
  constraint cursor_type check (cursor_type_code in ('TIME', 'ID', 'TOKEN'))
);
create index cursor_time on harvest.ing_cursor (provenance_code, operation_code, normalized_instant);

-- Every advance of a cursor, once for each slice and generation.
create table harvest.ing_cursor_event (
  plan_month           date not null,
  slice_id             bigint not null,
  generation           integer not null,
  provenance_code      text not null,
  operation_code       text not null,
  cursor_key           text not null,
  namespace_scope_code text not null,
  namespace_key        text not null,
  cursor_type_code     text not null,
  direction_code       text not null,
  prev_value           text,
  new_value            text not null,
  prev_instant         timestamptz,
  new_instant          timestamptz,
  observed_max_value   text,
  schedule_instance_id uuid not null,
  plan_id              uuid not null,
  task_id              bigint not null,
  run_id               bigint not null,
  expr_hash            text not null,
  created_at           timestamptz not null default now(),
  primary key (plan_month, slice_id, generation),
  constraint cursor_event_direction check (direction_code in ('FORWARD', 'BACKFILL'))
) partition by range (plan_month);
create index cursor_event_timeline on harvest.ing_cursor_event
  (provenance_code, operation_code, namespace_scope_code, namespace_key, created_at desc);

-- A service adds the months to come. The default partitions take what it was too late for.
create table harvest.ing_task_run_batch_default partition of harvest.ing_task_run_batch default;
create table harvest.ing_cursor_event_default partition of harvest.ing_cursor_event default;

-- Adds the partitions of this month and those after it that are missing; answers how many. It waits for no longer than two
-- seconds for those who write, since whoever writes next waits for it.
create function harvest.add_months(first_month date, months integer) returns integer language plpgsql as $$
declare
  month date;
  parent text;
  added integer := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('harvest.add_months', 0)), set_config('lock_timeout', '2s', true);
  for n in 0 .. months - 1 loop
    month := date_trunc('month', first_month) + make_interval(months => n);
    foreach parent in array array['ing_task_run_batch', 'ing_cursor_event'] loop
      continue when to_regclass(format('harvest.%I', parent || to_char(month, '_YYYYMM'))) is not null;
      execute format('create table harvest.%I partition of harvest.%I for values from (%L) to (%L)',
                     parent || to_char(month, '_YYYYMM'), parent, month, month + interval '1 month');
      added := added + 1;
    end loop;
  end loop;
  return added;
end $$;
select harvest.add_months(current_date, 13);

-- The ids that the first phase found and the second has to fetch.
create table harvest.slice_id_item (
  slice_id   bigint not null references harvest.ing_plan_slice,
  generation integer not null,
  ord        integer not null,
  item_id    text not null,
  state      text not null default 'NEW',
  primary key (slice_id, generation, ord),
  unique (slice_id, generation, item_id),
  constraint id_item_states check (state in ('NEW', 'RETRY', 'DONE', 'MISSING'))
);

-- Ids that a source lists but does not answer.
create table harvest.bad_id (
  endpoint_id integer not null references harvest.reg_prov_endpoint_def,
  item_id     text not null,
  reason      text not null,
  first_at    timestamptz not null default now(),
  last_at     timestamptz not null default now(),
  expires_at  timestamptz not null,
  primary key (endpoint_id, item_id)
);
create index bad_id_expiry on harvest.bad_id (expires_at);

-- The records as the sources have them now. version counts the changes of content. change_xid is the transaction of the last
-- change: readers follow it up to the oldest transaction that is still open, so they miss nothing.
create table harvest.record (
  endpoint_id      integer not null,
  item_key         text not null,
  version          integer not null default 1,
  deleted          boolean not null default false,
  content_hash     uuid not null,
  source_time      timestamptz,
  provider_version text,
  change_xid       xid8 not null default pg_current_xact_id(),
  plan_month       date not null,
  slice_id         bigint not null,
  generation       integer not null,
  batch_no         integer not null,
  data             json,
  primary key (endpoint_id, item_key)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
create index record_change on harvest.record (endpoint_id, change_xid);

-- Versions that a later one replaced.
create table harvest.record_version (
  endpoint_id      integer not null,
  item_key         text not null,
  version          integer not null,
  deleted          boolean not null,
  content_hash     uuid not null,
  source_time      timestamptz,
  provider_version text,
  change_xid       xid8 not null,
  plan_month       date not null,
  slice_id         bigint not null,
  generation       integer not null,
  batch_no         integer not null,
  data             json,
  primary key (endpoint_id, item_key, version)
);
create index record_version_change on harvest.record_version (endpoint_id, change_xid);

-- Records that could not be stored, and why.
create table harvest.quarantine (
  quarantine_id bigint generated always as identity primary key,
  endpoint_id   integer not null,
  plan_month    date not null,
  slice_id      bigint not null,
  generation    integer not null,
  batch_no      integer not null,
  item_key      text,
  reason_code   text not null,
  reason        text not null,
  expression    text,
  fragment      text not null,
  created_at    timestamptz not null default now()
);
create index quarantine_slice on harvest.quarantine (slice_id, quarantine_id);
create index quarantine_time on harvest.quarantine (endpoint_id, quarantine_id desc);

-- Bodies of responses, where there is no folder for them.
create table harvest.body (
  body_hash  text primary key,
  content    bytea not null,
  created_at timestamptz not null default now()
);
alter table harvest.body alter column content set storage external;

-- A window of a table in the lake. wanted counts the changes that it should have, landed those that it has.
--   PENDING -> LANDING -> LANDED
--      ^          |-----> PENDING   after a failure, a lost process, or a change in the meantime
--      |          `-----> FAILED    after too many of them
--      `-- LANDED, FAILED           a slice of the window has completed
create table harvest.landing (
  endpoint_id  integer not null references harvest.reg_prov_endpoint_def,
  op_time      text not null,
  table_name   text not null,
  window_from  timestamptz not null,
  window_to    timestamptz not null,
  plan_id      uuid not null,
  status_code  text not null default 'PENDING',
  wanted       bigint not null default 1,
  landed       bigint not null default 0,
  rows         bigint,
  content_hash text,
  due_at       timestamptz,
  attempt      integer not null default 0,
  lost_count   integer not null default 0,
  session_id   bigint,
  fence        bigint,
  last_error   text,
  landed_at    timestamptz,
  primary key (endpoint_id, op_time),
  constraint landing_states check (status_code in ('PENDING', 'LANDING', 'LANDED', 'FAILED')),
  constraint landing_held check ((status_code = 'LANDING') = (session_id is not null and fence is not null)),
  constraint landing_due check ((status_code = 'PENDING') = (due_at is not null))
);
create index landing_queue on harvest.landing (due_at, endpoint_id, op_time) where status_code = 'PENDING';
create index landing_held_by on harvest.landing (session_id) where status_code = 'LANDING';
create index landing_plan on harvest.landing (plan_id);
