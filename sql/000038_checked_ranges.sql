-- What updates have checked is kept by plan, without what a later plan has checked again, so that a range that never completes does not let it grow.

-- The ranges of ids that no later plan of the endpoint has checked.
create table harvest.checked_keys (
  plan_id       uuid primary key references harvest.ing_plan on delete cascade,
  endpoint_id   integer not null,
  namespace_key text not null,
  keys          harvest.key_multirange not null
);
create index checked_keys_endpoint on harvest.checked_keys (endpoint_id, namespace_key);

with own as (
  select p.plan_id, p.endpoint_id, p.namespace_key, p.planned_at, range_agg(s.keys) as keys
  from harvest.ing_plan_slice s join harvest.ing_plan p using (plan_id)
  where s.keys is not null and s.status_code = 'COMPLETE' group by p.plan_id
)
insert into harvest.checked_keys (plan_id, endpoint_id, namespace_key, keys)
select plan_id, endpoint_id, namespace_key, left_keys from (
  select o.*, o.keys - coalesce((select range_agg(l.keys) from own l
                                 where l.endpoint_id = o.endpoint_id and l.namespace_key = o.namespace_key
                                   and (l.planned_at, l.plan_id) > (o.planned_at, o.plan_id)), '{}') as left_keys
  from own o) o
where not isempty(o.left_keys);
drop index harvest.slice_keys;

-- BACKFILL and UPDATE ask for each endpoint of a source whether a harvest of it runs or is due: by task_running and task_due.
drop index harvest.task_harvest;

insert into harvest.sys_dict_item (type_code, item_code) values ('classifier_action', 'DELETED');
