-- A delivery is retried for minutes before it fails, and the alert of failed ones is sent once an hour for a callback.

alter table webhooks.metrics_webhook_subscription alter column retry_num set default 8;
-- When the alert DELIVERY_FAILED was last made for this callback, since its last success.
alter table webhooks.endpoint add column failure_alerted_at timestamptz;
-- To find the subscription that is posted again.
create index subscription_same on webhooks.metrics_webhook_subscription (callback_url, team_name, kpi_id);
drop index webhooks.subscription_endpoint;
