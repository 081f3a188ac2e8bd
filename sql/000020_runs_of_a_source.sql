-- Finds the runs of a source by their time, for the page that shows where its time goes.

create index run_source on harvest.ing_task_run (provenance_code, started_at);
