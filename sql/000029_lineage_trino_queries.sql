-- A statement of Trino is one asset, whichever query ran it: assets that were named by the id of a query are merged.

-- The new name and key of each statement, as in src/lineage/extract/process.ts and src/lineage/graph/names.ts. A key contains lengths
-- in UTF-16, so names that are not ASCII stay as they are.
create temp table trino_query on commit drop as
select q.tenant_id, q.id, q.key, q.path, k.new_key, min(q.id) over (partition by q.tenant_id, k.new_key) as to_id
from (
  select n.tenant_id, n.id, n.key, n.path as old_path,
         array[n.path[1], regexp_replace(n.path[2], '(?<![[:alnum:]])[0-9]{8}_[0-9]{6}_[0-9]{5}_[a-z0-9]{5}(?![[:alnum:]])',
           'query-' || left(n.path[3], 8), 'g'), n.path[3]] as path
  from lineage.node n
  where n.kind = 'SQL' and n.deleted_at is null and n.path[2] ~ '[0-9]{8}_[0-9]{6}_[0-9]{5}_[a-z0-9]{5}'
) q
cross join lateral (
  select left(encode(sha256(convert_to(format('SQL:%s:%s:%s:%s:%s:%s', length(q.path[1]), q.path[1], length(q.path[2]), q.path[2],
    length(q.path[3]), q.path[3]), 'UTF8')), 'hex'), 32)::uuid as new_key
) k
where q.path <> q.old_path and octet_length(q.path[1] || q.path[2]) = length(q.path[1] || q.path[2]);

insert into lineage.edge as e (tenant_id, src, kind, dst, transformations, first_at)
select g.tenant_id, coalesce(s.to_id, g.src), g.kind, coalesce(d.to_id, g.dst), min(g.transformations), min(g.first_at)
from lineage.edge g
left join trino_query s on s.tenant_id = g.tenant_id and s.id = g.src
left join trino_query d on d.tenant_id = g.tenant_id and d.id = g.dst
where s.id is not null or d.id is not null
group by 1, 2, 3, 4
on conflict (tenant_id, src, kind, dst) do update set first_at = least(e.first_at, excluded.first_at);

insert into lineage.execution (tenant_id, node_id, run_uuid, created_at)
select e.tenant_id, q.to_id, e.run_uuid, e.created_at
from trino_query q join lineage.execution e on e.tenant_id = q.tenant_id and e.node_id = q.id where q.id <> q.to_id
on conflict do nothing;
delete from lineage.execution e using trino_query q where e.tenant_id = q.tenant_id and e.node_id = q.id and q.id <> q.to_id;
insert into lineage.execution_count (tenant_id, node_id, executions, last_at)
select q.tenant_id, q.to_id, sum(c.executions), max(c.last_at)
from trino_query q join lineage.execution_count c on c.tenant_id = q.tenant_id and c.node_id = q.id group by 1, 2
on conflict (tenant_id, node_id) do update set executions = excluded.executions, last_at = excluded.last_at;

update lineage.telling t set process_id = q.to_id
from trino_query q where t.tenant_id = q.tenant_id and t.process_id = q.id and q.id <> q.to_id;
insert into lineage.mention (tenant_id, key, telling)
select m.tenant_id, q.new_key, m.telling
from trino_query q join lineage.mention m on m.tenant_id = q.tenant_id and m.key = q.key
on conflict do nothing;
delete from lineage.mention m using trino_query q where m.tenant_id = q.tenant_id and m.key = q.key;

-- The graphs of these tenants in Neo4j still have the merged assets.
insert into lineage.mirror_gap (tenant_id, error)
select distinct tenant_id, 'An upgrade has made one asset of the queries of Trino that run one statement.' from trino_query
on conflict (tenant_id) do nothing;
delete from lineage.node n using trino_query q where n.tenant_id = q.tenant_id and n.id = q.id and q.id <> q.to_id;
update lineage.node n set key = q.new_key, path = q.path, name = q.path[2], attributes = n.attributes - 'jobName',
       times = n.times - 'jobName', updated_at = now()
from trino_query q where n.tenant_id = q.tenant_id and n.id = q.to_id and q.id = q.to_id;

-- Stored events are read again, for the new name of the job.
update lineage.tenant t set reread_after = '00000000-0000-0000-0000-000000000000'
where exists (select from trino_query q where q.tenant_id = t.id);
drop table trino_query;
