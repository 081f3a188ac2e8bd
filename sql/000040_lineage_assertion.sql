-- What an event says is an assertion: the tables and columns of lineage had another word for it.

alter table lineage.telling rename to assertion;
alter table lineage.assertion rename constraint telling_pkey to assertion_pkey;
alter table lineage.assertion rename constraint telling_tenant_id_fkey to assertion_tenant_id_fkey;

alter table lineage.telling_time rename to assertion_time;
alter table lineage.assertion_time rename constraint telling_time_pkey to assertion_time_pkey;

alter table lineage.telling_event rename to assertion_event;
alter table lineage.assertion_event rename constraint telling_event_pkey to assertion_event_pkey;

alter table lineage.mention rename column telling to assertion;
alter index lineage.mention_telling rename to mention_assertion;

alter table lineage.lineage_events rename column telling to assertion;
alter index lineage.idx_le_telling rename to idx_le_assertion;
