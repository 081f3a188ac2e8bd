-- A slice that cannot be cut in time and is over a cap of its source is divided into parts by other dimensions.
-- It stays READY, without a task, until its parts have ended, and is then complete if they have all of its records.
--
-- A part has no window of its own, so whatever looks for complete time finds the whole slice and never a part of it. The time that it
-- asks for is in slice_spec. root_slice_id is the slice with the window; parent_slice_id is what was divided, which may be a part too.
alter table harvest.ing_plan_slice
  add column root_slice_id bigint,
  add column part jsonb,
  add column is_parted boolean not null default false,
  add constraint slice_part_window check (root_slice_id is null or window_from is null and window_to is null and part is not null);
create index slice_part on harvest.ing_plan_slice (root_slice_id) where root_slice_id is not null;
create index slice_parted on harvest.ing_plan_slice (plan_id) where is_parted and status_code = 'READY';

insert into harvest.sys_dict_type (type_code, description) values ('dimension_type', 'What slices are divided by beside time');
insert into harvest.sys_dict_item (type_code, item_code)
  select 'dimension_type', unnest('{DATE,NUMBER,VALUES,PREFIX}'::text[]);
