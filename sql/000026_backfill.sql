-- Backfills beside harvests: which of two answers is the newer one, and whether a harvest waits for a source.

-- When the answer of a page was asked for, by the database's clock. Of two versions with the same time of the source, or with none,
-- the one that was asked for later is the newer one.
alter table harvest.ing_task_run_batch add column fetched_at timestamptz;

-- BACKFILL and UPDATE make way while a harvest of their source runs or is due: scheduled_at is null while it runs.
create index task_harvest on harvest.ing_task (provenance_code, scheduled_at) where operation_code = 'HARVEST' and finished_at is null;

insert into harvest.sys_dict_type (type_code, description) values ('window_order', 'How the list of a source is sorted in time');
insert into harvest.sys_dict_item (type_code, item_code) values ('window_order', 'ascending'), ('window_order', 'descending');
