-- After a source has refused access, one task asks first, and the others follow when the source has answered it.

-- Set when Millrace pauses the endpoint, and unset by the first records or the first slice that is complete afterwards. Until then one of its tasks runs at once.
alter table harvest.ing_partition add column is_refused boolean not null default false;
