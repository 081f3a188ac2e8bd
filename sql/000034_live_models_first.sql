-- What has just arrived is computed before the periods of a backfill, however many of those are ready.

-- The new one is there before the old one goes: claims have an index all the time.
drop index concurrently if exists arrivals.model_instance_queue;
create index concurrently model_instance_queue on arrivals.model_instance ((trigger = 'backfill'), ready_at, model_id, op_time)
  where state in ('ready', 'returned');
drop index concurrently if exists arrivals.model_instance_ready;
