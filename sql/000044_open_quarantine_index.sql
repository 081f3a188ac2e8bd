-- What is quarantined and not decided, by the expression that has read it.

drop index concurrently if exists harvest.quarantine_expression;
create index concurrently quarantine_expression on harvest.quarantine (endpoint_id, coalesce(expr_proto_hash, ''), item_key)
  where resolved_at is null and item_key is not null and not is_superseded;
