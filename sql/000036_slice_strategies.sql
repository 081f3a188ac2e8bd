-- Slices can be ranges of pages or of ids beside windows of time.
insert into harvest.sys_dict_type (type_code, description) values ('slice_strategy', 'What slices are: windows, pages or ids');
insert into harvest.sys_dict_item (type_code, item_code) select 'slice_strategy', unnest('{TIME,PAGE,ID}'::text[]);
