-- Asynchronous tasks that no retry is left for, by tenant, for the overview and the doctor.

drop index concurrently if exists lineage.idx_task_dead;
create index concurrently idx_task_dead on lineage.ol_async_task (tenant_id, updated_at) where status = 'DEAD';
