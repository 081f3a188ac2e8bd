-- Updates ask for known records again, and what was checked is kept as ranges of ids.
-- So a check that changes nothing writes one row for some thousands of records, and to no record.

create type harvest.key_range as range (subtype = text, multirange_type_name = harvest.key_multirange);

-- Null for slices of other operations, and of ids that a plan names.
alter table harvest.ing_plan_slice add column keys harvest.key_range;
create index slice_keys on harvest.ing_plan_slice (endpoint_id, namespace_key, ended_at) where keys is not null;
