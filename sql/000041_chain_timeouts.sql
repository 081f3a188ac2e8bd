-- A model is tried again after its chain took too long, and not after a person has stopped that chain: both end as STOPPED.

-- Set in the transaction that stops the chain's run because of the model's time-out.
alter table arrivals.metrics_task_log add column timed_out boolean not null default false;
