-- A dropped asset can still be looked at: who dropped it and when, and what was known of it.

-- Its attributes when it was dropped. Those in `attributes` are cleared, because the name may be used again.
alter table lineage.node add column last_attributes jsonb,
  add constraint node_last_attributes check (last_attributes is null or deleted_at is not null);

-- Until now the words of dropped assets were cleared as well.
update lineage.node set words = to_tsvector('simple', regexp_replace(lower(array_to_string(path, ' ')), '[^[:alnum:]]+', ' ', 'g'))
where deleted_at is not null and words = '';
create index node_dropped_words on lineage.node using gin (words) where deleted_at is not null;
