-- Who announced the newest arrival of a table, so that a person who finds a wrong one knows whom to ask.

alter table arrivals.metrics_etl_log add column announced_by varchar(512);
