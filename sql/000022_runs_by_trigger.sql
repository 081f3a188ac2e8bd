-- Runs are listed by what started them and by whom, and a rare trigger must not be looked for in all of history.

drop index concurrently if exists chains.job_run_trigger;
create index concurrently job_run_trigger on chains.job_run (trigger, created_at desc);
drop index concurrently if exists chains.job_run_triggered_by;
create index concurrently job_run_triggered_by on chains.job_run (triggered_by, created_at desc);
