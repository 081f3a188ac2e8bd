-- The type of a column comes from its catalog, else from a writer of the table, else from a reader, and is not embedded any more.

-- Embeddings and waiting tasks with the hash of a column's old text get that of its new one. Otherwise all columns would be embedded
-- again, and a waiting task would find its text outdated and leave its column without an embedding.
create temp table column_text on commit drop as
select n.tenant_id, n.id, encode(sha256(convert_to(left(t.former, 8000), 'UTF8')), 'hex') as former_hash,
       encode(sha256(convert_to(left(t.present, 8000), 'UTF8')), 'hex') as present_hash
from lineage.node n
cross join lateral (
  select 'column ' || array_to_string(array_remove(n.path[2:], ''), '.') as name,
         nullif(btrim(n.attributes ->> 'dataType', E' \t\r\n'), '') as type,
         nullif(btrim(n.attributes ->> 'description', E' \t\r\n'), '') as description
) p
cross join lateral (
  select concat_ws(E'\n', p.name, p.type, p.description) as former, concat_ws(E'\n', p.name, p.description) as present
) t
where n.kind = 'COLUMN' and p.type is not null;
update lineage.embedding e set content_hash = c.present_hash
from column_text c where e.tenant_id = c.tenant_id and e.node_id = c.id and e.content_hash = c.former_hash;
update lineage.ol_async_task t set content_hash = c.present_hash
from column_text c
where t.tenant_id = c.tenant_id and t.resource_type = 'COLUMN' and t.resource_id = c.id::text and t.content_hash = c.former_hash
  and not exists (
    select from lineage.ol_async_task o
    where o.task_type = t.task_type and o.tenant_id = t.tenant_id and o.resource_type = t.resource_type
      and o.resource_id = t.resource_id and o.model_fingerprint = t.model_fingerprint and o.content_hash = c.present_hash
  );
drop table column_text;

-- Columns with different types from two engines are contested no longer, so their events need not be applied each time.
update lineage.node set contested = false where contested and kind = 'COLUMN';

-- Blank fields of column lineage were read as this transformation. Events that really have it are applied again below.
update lineage.edge set transformations = array_remove(transformations, '{"type":"DIRECT"}')
where kind = 'DERIVES_FROM' and '{"type":"DIRECT"}' = any(transformations);

-- Stored events are read again, because the source of a column's type was not stored.
update lineage.tenant set reread_after = '00000000-0000-0000-0000-000000000000';
