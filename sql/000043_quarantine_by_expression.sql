-- An update asks for what another definition has quarantined, and finds it by its expression instead of reading all of it.
-- The expression is null for rows of before, until an update has looked at them.
alter table harvest.quarantine
  add column expr_proto_hash text,
  -- A later row of the id decides.
  add column is_superseded boolean not null default false;
