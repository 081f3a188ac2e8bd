-- A dropped asset can still be looked at: who dropped it and when, and what was known of it.

-- Its attributes when it was dropped. Those in `attributes` are cleared, because the name may be used again. No constraint ties it to
-- `deleted_at`: a process of an earlier version, which does not know the column, leaves it set when the name is used again.
alter table lineage.node add column last_attributes jsonb;
