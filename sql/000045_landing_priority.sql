-- What a harvest has completed lands before the windows of backfills and updates, however many of those wait.

-- Of the plan that wants it to land; smaller goes first. A process of the version before queues as ever.
alter table harvest.landing add column priority integer not null default 100;
