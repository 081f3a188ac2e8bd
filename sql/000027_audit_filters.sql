-- The audit log is read by person, by action, by target and by time: each way has an index, so that a page of it costs a page.

drop index concurrently if exists kernel.audit_log_newest;
create index concurrently audit_log_newest on kernel.audit_log (at desc, id desc);
drop index concurrently if exists kernel.audit_log_actor;
create index concurrently audit_log_actor on kernel.audit_log (actor, at desc, id desc);
drop index concurrently if exists kernel.audit_log_key;
create index concurrently audit_log_key on kernel.audit_log (key_id, at desc, id desc) where key_id is not null;
drop index concurrently if exists kernel.audit_log_action;
create index concurrently audit_log_action on kernel.audit_log (action, at desc, id desc);
drop index concurrently if exists kernel.audit_log_target;
create index concurrently audit_log_target on kernel.audit_log (target text_pattern_ops);
