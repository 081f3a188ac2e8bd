-- The queue of windows is read in the order of their priority.

-- The new one is there before the old one goes, so claims of this version have an index all the time. From then on
-- a claim of the version before reads the whole queue.
drop index concurrently if exists harvest.landing_ready;
create index concurrently landing_ready on harvest.landing (priority, due_at, endpoint_id, op_time) where status_code = 'PENDING';
drop index concurrently if exists harvest.landing_queue;
