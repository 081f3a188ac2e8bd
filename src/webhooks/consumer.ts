/**
 * Turns events of the outbox into deliveries: a KPI's update into one for each group of subscriptions that share callback,
 * retries and secret, an alert into one for each address in the settings. Events that come together are handled together.
 */
import type { Db } from "../kernel/data/db.ts";
import { createGroupCommit } from "../kernel/data/group-commit.ts";
import type { Ids } from "../kernel/ids.ts";
import type { OutboxConsumer, OutboxEvent } from "../kernel/work/outbox.ts";
import type { Wake } from "../kernel/work/wake.ts";
import type { Alerts } from "./alerts.ts";
import { ALERT_OF_TOPIC, alertOf, KPI_UPDATED_TOPIC, type KpiUpdated, kpiUpdatedPayload } from "./events.ts";
import type { Keeper } from "./keeper.ts";
import { insertDeliveries, type NewDelivery } from "./store/deliveries.ts";
import { type Subscriber, subscribersOf } from "./store/subscriptions.ts";
import { DELIVERIES_TOPIC } from "./topics.ts";

/** So many of a group's subscriptions a delivery remembers: one for each team to sign for, the rest in case they go. */
const SUBSCRIPTIONS_KEPT = 100;
const TIMEOUT_MS = 30_000;

export interface ConsumerDeps {
  db: Db;
  wake: Wake;
  ids: Ids;
  keeper: Keeper;
  alerts: Alerts;
}

export function createConsumer({ db, wake, ids, keeper, alerts }: ConsumerDeps): OutboxConsumer {
  const incoming = createGroupCommit<OutboxEvent, void>({
    identity: ({ eventId }) => eventId,
    async write(events) {
      const updates = events.filter(({ topic }) => topic === KPI_UPDATED_TOPIC);
      const made = [
        ...(updates.length > 0 ? await deliveriesOfUpdates(updates) : []),
        ...events.flatMap((event) => {
          const payload = alertOf(event);
          return payload ? alerts.deliveriesOf(event.eventId, payload) : [];
        }),
      ];
      if ((await insertDeliveries(db, made)) > 0) wake.hint(DELIVERIES_TOPIC);
      return events.map(() => undefined);
    },
  });

  async function deliveriesOfUpdates(events: readonly OutboxEvent[]): Promise<NewDelivery[]> {
    const updates = events.map(({ eventId, payload }) => ({ eventId, told: payload as KpiUpdated }));
    const kpiIds = new Set(updates.flatMap(({ told }) => told.affectedKpiIds));
    const subscribers = (await subscribersOf(db, [...kpiIds])).map((row) => ({ ...row, group: groupOf(row) }));
    return updates.flatMap(({ eventId, told }) => {
      const affected = new Set(told.affectedKpiIds);
      const groups = new Map<string, [Subscriber, ...Subscriber[]]>();
      for (const subscriber of subscribers.filter(({ kpi_id }) => affected.has(kpi_id))) {
        const group = groups.get(subscriber.group);
        if (group) group.push(subscriber);
        else groups.set(subscriber.group, [subscriber]);
      }
      const payload = kpiUpdatedPayload(told);
      return [...groups.values()].map(
        (group, index): NewDelivery => ({
          id: ids.uuid(),
          event_id: eventId,
          group_no: index + 1,
          callback_url: group[0].callback_url,
          subscription_ids: oneOfEachTeamFirst(group).slice(0, SUBSCRIPTIONS_KEPT),
          payload,
          retry_num: group[0].retry_num,
        }),
      );
    });
  }

  /** Secrets are compared opened: sealed ones never look alike. One that cannot be opened fails its own delivery only. */
  function groupOf({ id, callback_url, retry_num, secret }: Subscriber): string {
    return JSON.stringify([callback_url, retry_num, secret === null ? null : (keeper.tryOpen(id, secret) ?? id)]);
  }

  return {
    name: "webhooks",
    topics: [KPI_UPDATED_TOPIC, ...Object.keys(ALERT_OF_TOPIC)],
    timeoutMs: TIMEOUT_MS,
    // An event is lost when it is given up, so that takes hours of failures.
    retry: { maxAttempts: 100, baseMs: 1_000, factor: 2, capMs: 300_000, jitter: 0.2 },
    deliver: (event) => incoming.add(event),
  };
}

function oneOfEachTeamFirst(group: readonly Subscriber[]): number[] {
  const first = new Map(group.toReversed().map(({ team_name, id }) => [team_name, id]));
  const leads = [...first.values()].sort((a, b) => a - b);
  return [...new Set([...leads, ...group.map(({ id }) => id)])];
}
