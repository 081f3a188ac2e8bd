-- Records that were quarantined are asked for again by updates, so it has to be known which of them have come since.
alter table harvest.quarantine add column resolved_at timestamptz;
-- The newest reason of each id that has not come since.
create index quarantine_open on harvest.quarantine (endpoint_id, item_key, quarantine_id desc)
  where resolved_at is null and item_key is not null;

-- Definitions may declare where a source hints at the size of a slice.
insert into harvest.sys_dict_type (type_code, description) values ('size_hint_unit', 'What a hint at the size of a slice counts');
insert into harvest.sys_dict_item (type_code, item_code) select 'size_hint_unit', unnest('{RECORDS,PAGES}'::text[]);
