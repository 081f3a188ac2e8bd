-- Nodes of chains harvest a window and wait for its plan, without a slot.

-- A node that is parked for a plan. `key` is the node's idempotency key, so that an attempt that is repeated finds its wait and
-- makes no second plan. The plan and the wait are inserted together.
create table harvest.node_wait (
  wait_id    uuid primary key,
  key        text not null unique,
  run_id     uuid not null,
  node_id    varchar(64) not null,
  plan_id    uuid not null references harvest.ing_plan,
  created_at timestamptz not null default now()
);
create index node_wait_plan on harvest.node_wait (plan_id);
