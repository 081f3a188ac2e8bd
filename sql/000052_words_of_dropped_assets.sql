-- Searches find dropped assets by their words, which were cleared until now.

drop index concurrently if exists lineage.node_dropped_words;
create index concurrently node_dropped_words on lineage.node using gin (words) where deleted_at is not null;
