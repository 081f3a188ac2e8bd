-- Lineage doubts renames that engines report, reads column lineage as lineage of tables, dates nothing in the future, and knows what its mirror misses.

-- A rename that an engine reports may have failed: it counts only while `doubt` is null. `unknown`: nothing had the old name. `taken`: a
-- table had the new one. `reported` is null for renames written before this, until the events that told them are read again.
alter table lineage.ending add column reported boolean default false;
alter table lineage.ending add column doubt text;
alter table lineage.ending add constraint ending_doubt
  check (doubt is null or (reported and kind in ('renamed', 'replaced') and doubt in ('unknown', 'taken')));
update lineage.ending set reported = null where kind in ('renamed', 'replaced');
create index ending_reported on lineage.ending (tenant_id, at) where reported;

-- Stored events are read again from behind this telling on, because this version reads more in them; null once that is done.
alter table lineage.tenant add column reread_after uuid;
update lineage.tenant set reread_after = '00000000-0000-0000-0000-000000000000';

-- Events dated more than a day ahead are refused from now on. Those that are stored count from the time of their arrival, or the tables
-- that one of them dropped would stay hidden, and what it says of others would win, until that date.
update lineage.lineage_events e set event_time = e.created_at
from lineage.tenant t where e.tenant_id = t.id and e.event_time > now() + interval '1 day';
do $$
declare
  present bigint := (extract(epoch from now()) * 1000000)::bigint;
  latest bigint := present + 86400000000;
begin
  -- What they ended is told again when the events are read again.
  delete from lineage.ending where at > latest;
  delete from lineage.telling_time where at > latest;
  update lineage.telling t set in_full = true, last_at = coalesce(
    (select (extract(epoch from max(e.event_time)) * 1000000)::bigint from lineage.lineage_events e
     where e.tenant_id = t.tenant_id and e.telling = t.key), present)
  where t.last_at > latest;
  update lineage.node n set times =
    (select jsonb_object_agg(key, case when value::numeric > latest then present else value::numeric end)
     from jsonb_each_text(n.times))
  where exists (select from jsonb_each_text(n.times) where value::numeric > latest);
  update lineage.edge set first_at = present where first_at > latest;
  update lineage.alias set at = present where at > latest;
  update lineage.execution_count set last_at = present where last_at > latest;
end $$;

-- Tenants of whose graph Neo4j has refused a change: what it holds of them is incomplete until it is rebuilt.
create table lineage.mirror_gap (
  tenant_id bigint primary key references lineage.tenant,
  first_at  timestamptz not null default clock_timestamp(),
  last_at   timestamptz not null default clock_timestamp(),
  changes   bigint not null default 1,
  error     text not null
);
-- Changes that were given up after a hundred attempts. Each names what to read anew, so that late is as good as in time.
update kernel.outbox set state = 'ready', attempt = 0, lost_count = 0, due_at = now()
where consumer = 'neo4j' and state = 'dead';
