-- A schedule whose opTime was sent without its offset was stored without the default, and could be neither read nor fired.
update chains.schedule set op_time = '{"offset": 0}' || op_time where op_time is not null and not op_time ? 'offset';
alter table chains.schedule add constraint schedule_op_time check (op_time is null or coalesce(
  jsonb_typeof(op_time -> 'grain') = 'string' and jsonb_typeof(op_time -> 'offset') = 'number', false));
