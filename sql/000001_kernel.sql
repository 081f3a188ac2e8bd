-- What every module stands on: fences, process sessions, the outbox, API keys and the audit log.

create schema if not exists kernel;

-- Fences come from one sequence, so that a fence is never given twice, even to a row that was deleted and made again.
create sequence kernel.fence;

-- A running process. Work that it holds by session is its own for as long as expires_at lies in the future.
create table kernel.session (
  id         bigint generated always as identity primary key,
  process    text not null,
  roles      text[] not null,
  version    text not null,
  started_at timestamptz not null default now(),
  expires_at timestamptz not null
);

-- What must leave the database, written with the change that it tells of. One row for each consumer; gone when delivered.
create table kernel.outbox (
  id          bigint generated always as identity primary key,
  event_id    uuid not null,
  consumer    text not null,
  topic       text not null,
  payload     jsonb not null,
  state       text not null default 'ready',
  due_at      timestamptz not null default now(),
  attempt     integer not null default 0,
  lost_count  integer not null default 0,
  session_id  bigint,
  fence       bigint,
  last_error  text,
  created_at  timestamptz not null default now(),
  unique (event_id, consumer),
  constraint outbox_state check (state in ('ready', 'leased', 'dead')),
  constraint outbox_holder check ((state = 'leased') = (session_id is not null and fence is not null))
);
create index outbox_ready on kernel.outbox (consumer, due_at, id) where state = 'ready';
create index outbox_leased on kernel.outbox (session_id) where state = 'leased';

-- Only the hash of a key is kept. tenant_id and source bind a key to one lineage tenant and kind of sender.
create table kernel.api_key (
  id                    uuid primary key,
  name                  text not null,
  hash                  bytea not null unique,
  hint                  text not null,
  scopes                text[] not null,
  tenant_id             bigint,
  source                text,
  rate_limit_per_minute integer,
  created_at            timestamptz not null default now(),
  created_by            text not null,
  revoked_at            timestamptz,
  constraint api_key_name check (length(name) between 1 and 128)
);

-- Who did what, when and from where. Control actions only; the workers' own transitions are in their modules' tables.
create table kernel.audit_log (
  id         bigint generated always as identity primary key,
  at         timestamptz not null default now(),
  actor      text not null,
  key_id     uuid,
  action     text not null,
  target     text not null,
  details    jsonb not null default '{}',
  address    text not null,
  request_id text not null
);
