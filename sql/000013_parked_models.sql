-- Who waits holds no slot: a model is parked while the run of its chain is under way, and a node of a chain while its model is.

alter table arrivals.model_instance
  add column chain_run_id uuid,
  drop constraint instance_states,
  drop constraint instance_due,
  drop constraint instance_ready,
  drop constraint instance_again,
  add constraint instance_states check (
    state in ('idle', 'waiting', 'quiet', 'asking', 'ready', 'running', 'parked', 'returned')
  ),
  add constraint instance_due check (
    (state <> 'quiet' or due_at is not null) and (due_at is null or state in ('quiet', 'parked'))
  ),
  add constraint instance_ready check ((state in ('ready', 'returned')) = (ready_at is not null)),
  add constraint instance_again check (not again or state in ('running', 'parked', 'returned')),
  add constraint instance_chain check (
    (state not in ('parked', 'returned') or chain_run_id is not null)
    and (chain_run_id is null or state in ('running', 'parked', 'returned'))
  );
drop index arrivals.model_instance_ready;
create index model_instance_ready on arrivals.model_instance (ready_at, model_id, op_time)
  where state in ('ready', 'returned');
create index model_instance_chain_run on arrivals.model_instance (chain_run_id) where chain_run_id is not null;
create index model_instance_parked on arrivals.model_instance (due_at) where state = 'parked';

-- The run that a retried, resumed or completed run of a chain continues.
create index metrics_task_log_chain_run on arrivals.metrics_task_log (chain_run_id) where chain_run_id is not null;

-- Runs that a worker of the version before waits for.
update arrivals.model_instance i
set state = 'parked', chain_run_id = l.chain_run_id, session_id = null, fence = null,
    due_at = now() + make_interval(secs => (select m.timeout_seconds from arrivals.metrics_model m where m.model_id = i.model_id))
from arrivals.metrics_task_log l
where l.model_id = i.model_id and l.op_time = i.op_time and l.status = 'RUNNING' and l.chain_run_id is not null
  and i.state = 'running';

-- A node of a chain that is parked for a run of a model. `key` is the node's idempotency key, so that an attempt that is
-- repeated finds its wait. Without a generation the run is still to be requested: another run of the model is under way.
create table arrivals.node_wait (
  wait_id    uuid primary key,
  key        text not null unique,
  run_id     uuid not null,
  node_id    varchar(64) not null,
  model_id   varchar(255) not null,
  op_time    varchar(255) not null,
  force      boolean not null,
  generation integer,
  created_at timestamptz not null default now()
);
create index node_wait_model on arrivals.node_wait (model_id, op_time);
