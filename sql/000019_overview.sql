-- What has ended in a range of time, and the models that wait, are found without reading history, for the overview.

-- The indexes include all columns that are read, because the rows are wide: a run contains its definition, a delivery its payload.
drop index concurrently if exists chains.job_run_ended;
create index concurrently job_run_ended on chains.job_run (ended_at) include (chain_id, status, created_at, run_id)
  where ended_at is not null and parent_run_id is null;
drop index concurrently if exists arrivals.metrics_task_log_ended;
create index concurrently metrics_task_log_ended on arrivals.metrics_task_log (end_time) include (model_id, op_time, status, start_time)
  where end_time is not null;
drop index concurrently if exists webhooks.delivery_ended;
create index concurrently delivery_ended on webhooks.delivery (ended_at) include (callback_url, status, created_at, id)
  where ended_at is not null;
drop index concurrently if exists harvest.plan_ended;
create index concurrently plan_ended on harvest.ing_plan (ended_at) include (provenance_code, status_code, created_at, plan_id)
  where ended_at is not null;
drop index concurrently if exists arrivals.model_instance_waiting;
create index concurrently model_instance_waiting on arrivals.model_instance (state, updated_at desc)
  where state in ('waiting', 'asking');
