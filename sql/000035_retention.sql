-- Nothing grows for ever: what is needed to find old rows, and to take an arrival back.

create index outbox_dead on kernel.outbox (created_at) where state = 'dead';
-- An arrival that was taken back stays as a row, so that people see who did it; it counts as missing until it arrives again.
alter table arrivals.metrics_etl_log add column retracted_at timestamptz, add column retracted_by text,
  add constraint arrival_retracted check ((retracted_at is null) = (retracted_by is null));
