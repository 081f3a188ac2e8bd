-- The next attempt of a node waits until the child run of an earlier attempt has stopped: without a slot, and without being counted.
alter table chains.live_node drop constraint live_node_states;
alter table chains.live_node drop constraint live_node_child;
alter table chains.live_node add constraint live_node_states
  check (state in ('waiting', 'delayed', 'blocked', 'ready', 'leased', 'parked'));
alter table chains.live_node add constraint live_node_child
  check ((state in ('parked', 'blocked')) = (child_run_id is not null));
drop index chains.live_node_parked;
create index live_node_child_run on chains.live_node (child_run_id) where child_run_id is not null;
