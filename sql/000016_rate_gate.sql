-- The rate gate: the limits of an external service, shared by every process that calls it.

-- One row for each limit. The columns up to rise_after_sec are the declaration (their defaults are those of an undeclared
-- gate); the rest is the state, which a new declaration leaves as it is.
create table kernel.rate_gate (
  key                 text primary key,
  -- Null if nobody has declared it. What an operator declares is not replaced by the definition of a source, nor the newer
  -- definition by an older one; the time is that of the plan that was made from it.
  declared_by         text,
  declared_at         timestamptz,
  rate_per_sec        float8 not null default 1,
  burst               integer not null default 1,
  concurrency         integer,
  warmup_sec          float8 not null default 0,
  floor_per_sec       float8 not null default 0.1,
  cut_factor          float8 not null default 2,
  rise_after_sec      float8 not null default 10,
  -- Limits that the service has sent in headers.
  header_rate_per_sec float8,
  header_concurrency  integer,
  -- The share of the declared rate that was in force at share_at; it grows with time from then on.
  share               float8 not null default 1,
  share_at            timestamptz not null default 'epoch',
  last_cut_at         timestamptz not null default 'epoch',
  cooldown_until      timestamptz not null default 'epoch',
  warm_from           timestamptz not null default 'epoch',
  -- The theoretical arrival time of GCRA: when a request of cost 1 may go if there is no burst.
  tat                 timestamptz not null default 'epoch',
  constraint rate_gate_key check (length(key) between 1 and 200),
  constraint rate_gate_declared check (declared_by in ('operator', 'source') and (declared_by is null) = (declared_at is null)),
  constraint rate_gate_rate check (rate_per_sec between 0.00001 and 10000),
  constraint rate_gate_burst check (burst between 1 and greatest(1, floor(rate_per_sec))),
  constraint rate_gate_concurrency check (concurrency between 1 and 1000 and header_concurrency between 1 and 1000),
  constraint rate_gate_floor check (floor_per_sec > 0),
  constraint rate_gate_cut check (cut_factor > 1),
  constraint rate_gate_rise check (rise_after_sec > 0 and warmup_sec >= 0),
  constraint rate_gate_share check (share > 0 and share <= 1)
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- What may be spent in a window of time. held_back is the share of it that only urgent work may spend, with a priority below 100.
create table kernel.rate_quota (
  key         text not null references kernel.rate_gate on delete cascade,
  unit        text not null,
  window_sec  float8 not null,
  quota_limit float8 not null,
  held_back   float8 not null default 0.1,
  used        float8 not null default 0,
  reset_at    timestamptz not null,
  primary key (key, unit, window_sec),
  constraint rate_quota_unit check (unit in ('requests', 'credits', 'usd_micros')),
  constraint rate_quota_window check (window_sec between 1 and 31708800),
  constraint rate_quota_limit check (quota_limit > 0 and used >= 0),
  constraint rate_quota_held_back check (held_back >= 0 and held_back < 1)
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- One row for each request that a gate with a concurrency limit allows at a time. A slot is free if nobody holds it, if it
-- has expired, or if the session of its holder is over. The fence tells the holder from a later one.
create table kernel.rate_slot (
  key        text not null references kernel.rate_gate on delete cascade,
  slot_no    integer not null,
  session_id bigint,
  fence      bigint,
  expires_at timestamptz,
  primary key (key, slot_no),
  constraint rate_slot_holder check ((session_id is null) = (fence is null) and (fence is null) = (expires_at is null))
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
