-- The rows of a batch of nodes are looked up one by one, whatever the planner takes the size of the tables for.
-- They are empty between two bursts of work. A plan that was made from that found it as cheap to join the other way round, and
-- read all live nodes for each node of a batch, until the statistics were renewed.
create or replace function chains.open_live(runs uuid[], of_run uuid[], nodes text[])
returns table (
  run_id uuid, node_id varchar, state text, waiting integer, failed integer, skipped integer, attempt integer, tries integer,
  lost integer, returned integer, fence text, child_run_id uuid,
  run_status text, open integer, run_failed integer, stopped integer, timed_out boolean
) language plpgsql as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(hashtextextended('chains.run ' || r.id, 0))
  from (select id::text from unnest(runs) as u(id) order by 1 offset 0) r;
  return query
    select n.run_id, n.node_id, n.state, n.waiting, n.failed, n.skipped, n.attempt, n.tries, n.lost_count, n.returned,
           n.fence::text, n.child_run_id, r.status, r.open, r.failed, r.stopped, r.timed_out
    from (select * from unnest(of_run, nodes) as u(run_id, node_id) order by 1, 2 limit cardinality(of_run)) i
    cross join lateral (select * from chains.live_run l where l.run_id = i.run_id offset 0) r
    cross join lateral (
      select * from chains.live_node l where l.run_id = i.run_id and l.node_id = i.node_id offset 0
    ) n;
end $$;
