-- Who wants to hear of KPIs, and every message that goes out: subscriptions, endpoints, deliveries and their attempts.

create schema webhooks;

-- A receiver: one signing key for each callback and team. Keys are sealed. After a rotation the previous key signs too,
-- until previous_until. failing_since is the first of the failures since the last success; nothing is sent before
-- held_until, which the receiver asked for.
create table webhooks.endpoint (
  callback_url    varchar(512) not null,
  team_name       varchar(64) not null,
  signing_key     text not null,
  previous_key    text,
  previous_until  timestamptz,
  failing_since   timestamptz,
  held_until      timestamptz,
  disabled_at     timestamptz,
  disabled_reason text,
  created_at      timestamptz not null default now(),
  primary key (callback_url, team_name),
  constraint endpoint_rotation check ((previous_key is null) = (previous_until is null)),
  constraint endpoint_disabled check ((disabled_at is null) = (disabled_reason is null))
);
create index endpoint_held on webhooks.endpoint (held_until) where held_until is not null;

-- The id is drawn before the row is written: the secret is sealed for it. Type and key of a secret are no secret.
create sequence webhooks.subscription_id as integer;
create table webhooks.metrics_webhook_subscription (
  id           integer primary key,
  kpi_id       varchar(64) not null,
  callback_url varchar(512) not null,
  secret       text,
  secret_type  text,
  secret_key   text,
  retry_num    integer not null default 3,
  status       varchar(16) not null default '1',
  team_name    varchar(64) not null default '',
  user_id      varchar(64) not null default '',
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  foreign key (callback_url, team_name) references webhooks.endpoint,
  constraint subscription_status check (status in ('0', '1')),
  constraint subscription_retries check (retry_num between 0 and 20),
  constraint subscription_secret check (
    (secret is null) = (secret_type is null) and (secret is null) = (secret_key is null)
    and secret_type in ('Query', 'Header', 'Body')
  )
);
create index subscription_kpi on webhooks.metrics_webhook_subscription (kpi_id) where status = '1';
create index subscription_endpoint on webhooks.metrics_webhook_subscription (callback_url, team_name);

-- One message to one receiver. callback_url is `alert:<name>` for an alert, whose address stays in the settings. `attempt`
-- counts all attempts, `tries` those that failed since it was made or a person last said "again".
create table webhooks.delivery (
  id               uuid primary key,
  event_id         uuid not null,
  group_no         integer not null,
  event            text not null,
  callback_url     varchar(512) not null,
  subscription_ids integer[] not null,
  model_id         varchar(255),
  op_time          varchar(255),
  payload          json not null,
  retry_num        integer not null,
  status           text not null default 'PENDING',
  due_at           timestamptz default now(),
  attempt          integer not null default 0,
  tries            integer not null default 0,
  lost_count       integer not null default 0,
  session_id       bigint,
  fence            bigint,
  status_code      integer,
  last_error       text,
  created_at       timestamptz not null default now(),
  ended_at         timestamptz,
  unique (event_id, group_no),
  constraint delivery_states check (status in ('PENDING', 'SENDING', 'DELIVERED', 'FAILED', 'CANCELLED')),
  constraint delivery_held check ((status = 'SENDING') = (session_id is not null and fence is not null)),
  constraint delivery_due check ((status = 'PENDING') = (due_at is not null)),
  constraint delivery_ended check ((status in ('DELIVERED', 'FAILED', 'CANCELLED')) = (ended_at is not null)),
  constraint delivery_counts check (attempt >= 0 and tries >= 0 and lost_count >= 0 and retry_num >= 0)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index delivery_ready on webhooks.delivery (callback_url, due_at, id) where status = 'PENDING';
create index delivery_due on webhooks.delivery (due_at) where status = 'PENDING';
create index delivery_held on webhooks.delivery (session_id) where status = 'SENDING';
create index delivery_room on webhooks.delivery (callback_url) where status = 'SENDING';
create index delivery_newest on webhooks.delivery (created_at desc, id desc);
create index delivery_failed on webhooks.delivery (created_at desc, id desc) where status = 'FAILED';
-- By a hash: with the address itself in front, a plan could take this index for the one of what is ready.
create index delivery_of_callback on webhooks.delivery (hashtextextended(callback_url, 0), created_at desc, id desc);
create index delivery_of_model on webhooks.delivery (model_id, op_time, created_at desc) where model_id is not null;

create table webhooks.delivery_attempt (
  delivery_id uuid not null references webhooks.delivery on delete cascade,
  attempt     integer not null,
  at          timestamptz not null,
  duration_ms integer not null,
  status_code integer,
  error       text,
  answer      text,
  primary key (delivery_id, attempt)
);
