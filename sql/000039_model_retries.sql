-- A model may say how often a run of it that failed is tried again, and after which waits; it waits for that without a slot.

alter table arrivals.metrics_model
  add column retry jsonb,
  add constraint model_retry check (jsonb_typeof(retry) = 'object');

-- The rows of one generation are its attempts.
alter table arrivals.metrics_task_log add column attempt integer not null default 1;

-- `failed_attempts` are those since the run was asked for; `due_at` is when a `retrying` one is tried again.
alter table arrivals.model_instance
  add column failed_attempts integer not null default 0,
  drop constraint instance_states,
  drop constraint instance_due,
  add constraint instance_states check (
    state in ('idle', 'waiting', 'quiet', 'asking', 'ready', 'running', 'parked', 'returned', 'retrying')
  ),
  add constraint instance_due check (
    (state not in ('quiet', 'retrying') or due_at is not null) and (due_at is null or state in ('quiet', 'retrying', 'parked'))
  ),
  add constraint instance_retry check (failed_attempts > 0 or state <> 'retrying');
create index model_instance_retrying on arrivals.model_instance (due_at) where state = 'retrying';
