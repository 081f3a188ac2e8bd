-- Stuck shards are listed and retried in the order of file and shard, at a cost that follows their number.

drop index concurrently if exists tracking.pipeline_failed;
create index concurrently pipeline_failed on tracking.pipeline_tracking (filename, shard) where
  'failed' in (event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status);
-- A claimed shard has a lease and is never in it, so claims pay nothing for it.
drop index concurrently if exists tracking.pipeline_without_lease;
create index concurrently pipeline_without_lease on tracking.pipeline_tracking (filename, shard) where
  leased_until is null and 'started' in (shard_splitter_status, shard_worker_status, mysql_sender_status);
