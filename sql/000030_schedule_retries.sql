-- A schedule that cannot fire keeps the time that it should have fired at, and is tried again later.

alter table chains.schedule add column retry_at timestamptz, add column problem text;
drop index chains.schedule_due;
create index schedule_due on chains.schedule (next_at) where not paused and next_at is not null and retry_at is null;
create index schedule_retry on chains.schedule (retry_at) where not paused and next_at is not null and retry_at is not null;
