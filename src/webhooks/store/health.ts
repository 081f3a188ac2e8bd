/** SQL for the doctor: deliveries that are stuck, and endpoints that fail or are disabled. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

const DELIVERIES = statement<{ sending: number; orphaned: number; overdue_seconds: number }>(
  "webhooks.health.deliveries",
  `select (select count(*)::int from webhooks.delivery where status = 'SENDING') as sending,
          (select count(*)::int from webhooks.delivery d where d.status = 'SENDING' and not exists (
             select from kernel.session s where s.id = d.session_id and s.expires_at > now() - interval '30 s')) as orphaned,
          coalesce((select extract(epoch from now() - min(d.due_at))::float8 from webhooks.delivery d
                    where d.status = 'PENDING' and not exists (
                      select from webhooks.endpoint e where e.callback_url = d.callback_url
                        and (e.failing_since is not null or e.held_until > now()))), 0) as overdue_seconds`,
);

export async function deliveryHealth(db: Db) {
  const [row] = await db.read(DELIVERIES);
  if (!row) throw new Error("the query of deliveries returned no row");
  return row;
}

const ENDPOINTS = statement<{ failing: number; disabled: number; example: string | null }>(
  "webhooks.health.endpoints",
  `select count(*) filter (where failing_since < now() - interval '1 hour' and disabled_at is null)::int as failing,
          count(*) filter (where disabled_at is not null)::int as disabled,
          min(callback_url) filter (where disabled_at is not null or failing_since < now() - interval '1 hour') as example
   from webhooks.endpoint`,
);

export async function endpointHealth(db: Db) {
  const [row] = await db.read(ENDPOINTS);
  if (!row) throw new Error("the query of endpoints returned no row");
  return row;
}
