-- Which table has arrived for which business date, the models that wait for them, their runs, and the KPI values they bring.

create schema arrivals;

-- A model: SQL on an engine, or a chain to run, once the tables it depends on have arrived for an opTime. State 1 is
-- published: only then do arrivals concern it.
create table arrivals.metrics_model (
  model_id        varchar(255) primary key,
  name            varchar(255) not null,
  description     text,
  state           smallint not null default 0,
  engine          varchar(64),
  sql             text,
  chain           varchar(128),
  grain           text,
  time_zone       varchar(64) not null,
  produces        varchar(255),
  rerun           text not null,
  timeout_seconds integer not null,
  version         bigint not null default 1,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  constraint model_state check (state in (0, 1)),
  constraint model_work check ((sql is null) <> (chain is null) and (sql is null) = (engine is null)),
  constraint model_grain check (grain in ('hour', 'day', 'month')),
  constraint model_rerun check (rerun in ('auto', 'ask', 'ignore'))
);
create index metrics_model_produces on arrivals.metrics_model (produces) where produces is not null;

-- What a model waits for. `shift` moves the model's opTime in units of its grain, and a finer grain of the table means all
-- of its opTimes inside that: with shift -1 and grain `hour`, a day waits for the 24 hours of the day before.
create table arrivals.metrics_model_dependency (
  id                    bigint generated always as identity primary key,
  model_id              varchar(255) not null references arrivals.metrics_model on delete cascade,
  dependency_table_name varchar(255) not null,
  optional              boolean not null default false,
  quiet_seconds         integer not null default 0,
  deadline              varchar(32),
  grain                 text,
  shift                 integer not null default 0,
  unique (dependency_table_name, model_id, shift),
  constraint dependency_grain check (grain in ('hour', 'day', 'month')),
  constraint dependency_quiet check (quiet_seconds >= 0)
);
create index metrics_model_dependency_model on arrivals.metrics_model_dependency (model_id, id);

-- The newest arrival of a table for an opTime. `sequence` grows with every arrival, so what a run has used can be told from
-- what came later, whatever the clocks said.
create sequence arrivals.arrival_sequence;
create table arrivals.metrics_etl_log (
  id              bigint generated always as identity primary key,
  table_name      varchar(255) not null,
  op_time         varchar(255) not null,
  arrival_time    timestamptz not null default now(),
  first_time      timestamptz not null default now(),
  sequence        bigint not null default nextval('arrivals.arrival_sequence'),
  arrivals        integer not null default 1,
  idempotency_key varchar(255),
  unique (table_name, op_time)
) with (fillfactor = 90);
create index metrics_etl_log_newest on arrivals.metrics_etl_log (sequence desc);
create index metrics_etl_log_op_time on arrivals.metrics_etl_log (op_time, table_name);

-- Where a model stands for an opTime: see src/arrivals/runs/states.ts. One row from the first arrival on, and the lock under which
-- all that concerns this model and opTime is decided. `generation` counts the runs, `again` says that something arrived
-- during the one under way, `consumed` is what the last success has used: {"TABLE opTime": sequence}.
create table arrivals.model_instance (
  model_id   varchar(255) not null references arrivals.metrics_model on delete cascade,
  op_time    varchar(255) not null,
  state      text not null default 'idle',
  generation integer not null default 0,
  again      boolean not null default false,
  trigger    text,
  caused_by  jsonb,
  consumed   jsonb,
  due_at     timestamptz,
  ready_at   timestamptz,
  session_id bigint,
  fence      bigint,
  lost_count integer not null default 0,
  updated_at timestamptz not null default now(),
  primary key (model_id, op_time),
  constraint instance_states check (state in ('idle', 'waiting', 'quiet', 'asking', 'ready', 'running')),
  constraint instance_held check ((state = 'running') = (session_id is not null and fence is not null)),
  constraint instance_due check ((state = 'quiet') = (due_at is not null)),
  constraint instance_ready check ((state = 'ready') = (ready_at is not null)),
  constraint instance_again check (not again or state = 'running')
) with (fillfactor = 70);
create index model_instance_ready on arrivals.model_instance (ready_at, model_id, op_time) where state = 'ready';
create index model_instance_running on arrivals.model_instance (session_id) where state = 'running';
create index model_instance_due on arrivals.model_instance (due_at) where state = 'quiet';
create index model_instance_op_time on arrivals.model_instance (op_time, model_id);

-- One row a run. At most one of a model and opTime is RUNNING.
create table arrivals.metrics_task_log (
  id            bigint generated always as identity primary key,
  model_id      varchar(255) not null,
  op_time       varchar(255) not null,
  status        varchar(255) not null default 'RUNNING',
  start_time    timestamptz not null default now(),
  end_time      timestamptz,
  message       varchar(2000),
  compute_count integer,
  storage_count integer,
  generation    integer not null,
  trigger       text not null,
  caused_by     jsonb,
  consumed      jsonb not null,
  worker        text not null,
  chain_run_id  uuid,
  constraint task_status check (status in ('RUNNING', 'SUCCESS', 'FAILED')),
  constraint task_ended check ((status = 'RUNNING') = (end_time is null))
);
create unique index metrics_task_log_running on arrivals.metrics_task_log (model_id, op_time) where status = 'RUNNING';
create index metrics_task_log_model on arrivals.metrics_task_log (model_id, op_time, id desc);
create index metrics_task_log_op_time on arrivals.metrics_task_log (op_time, id desc);
create index metrics_task_log_failed on arrivals.metrics_task_log (id desc) where status = 'FAILED';

-- EXTENDED indicators are fed by one model, COMPUTED ones by a formula over others.
create table arrivals.metrics_kpi (
  kpi_id     varchar(64) primary key,
  type       text not null,
  name       varchar(255) not null,
  expression text,
  depends_on text[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint kpi_type check (type in ('EXTENDED', 'COMPUTED')),
  constraint kpi_formula check ((type = 'COMPUTED') = (expression is not null))
);
create index metrics_kpi_parts on arrivals.metrics_kpi using gin (depends_on);
create table arrivals.metrics_model_kpi (
  kpi_id   varchar(64) primary key,
  model_id varchar(255) not null references arrivals.metrics_model on delete cascade
);
create index metrics_model_kpi_model on arrivals.metrics_model_kpi (model_id);

-- `dimension_key` is a digest of the dimensions, which may be longer than an index takes. Values of COMPUTED indicators
-- have no model of their own; task_id is the run after which they were computed.
create table arrivals.metrics_kpi_data (
  kpi_id        varchar(64) not null,
  op_time       varchar(255) not null,
  dimension_key text not null,
  dimensions    jsonb not null,
  value         double precision not null,
  model_id      varchar(255),
  task_id       bigint not null,
  generation    integer not null,
  updated_at    timestamptz not null default now(),
  primary key (kpi_id, op_time, dimension_key)
);
create index metrics_kpi_data_model on arrivals.metrics_kpi_data (model_id, op_time) where model_id is not null;
create index metrics_kpi_data_op_time on arrivals.metrics_kpi_data (op_time, kpi_id);

-- The next deadline of each dependency that has one: a timer that is looked at when it is due, and then set to the next opTime.
create table arrivals.model_deadline (
  dependency_id bigint primary key references arrivals.metrics_model_dependency on delete cascade,
  op_time       varchar(255) not null,
  due_at        timestamptz not null
);
create index model_deadline_due on arrivals.model_deadline (due_at);
