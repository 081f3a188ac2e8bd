/**
 * The outbox consumer that turns events into deliveries: a KPI update into one for each group of subscriptions with the same
 * callback, retries and secret, an alert into one for each address in the settings. Concurrent events are handled in one batch.
 */
import type { Db } from "../../kernel/data/db.ts";
import { createGroupCommit } from "../../kernel/data/group-commit.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { OutboxConsumer, OutboxEvent } from "../../kernel/work/outbox.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { Alerts } from "../alerts.ts";
import type { WebhooksHints } from "../catalogue.ts";
import { ALERT_OF_TOPIC, alertOf, KPI_UPDATED_TOPIC, type KpiUpdated, kpiUpdatedPayload } from "../events.ts";
import type { SealedSecrets } from "../secrets/sealed-secrets.ts";
import { insertDeliveries, type NewDelivery } from "../store/deliveries.ts";
import { type Subscriber, subscribersOf } from "../store/subscriptions.ts";
import { DELIVERIES_TOPIC } from "../topics.ts";

/** A delivery stores this many of a group's subscriptions: one per team, for its signature, and others in case some are deleted. */
const SUBSCRIPTIONS_KEPT = 100;
const TIMEOUT_MS = 30_000;

export interface ConsumerDeps {
  db: Db;
  wake: Wake;
  hints: WebhooksHints;
  ids: Ids;
  sealedSecrets: SealedSecrets;
  alerts: Alerts;
}

export function createConsumer({ db, wake, hints, ids, sealedSecrets, alerts }: ConsumerDeps): OutboxConsumer {
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
      if ((await insertDeliveries(db, made)) > 0) {
        wake.hint(DELIVERIES_TOPIC);
        hints.changed(
          db,
          "delivery",
          made.map(({ id }) => id),
        );
      }
      return events.map(() => undefined);
    },
  });

  async function deliveriesOfUpdates(events: readonly OutboxEvent[]): Promise<NewDelivery[]> {
    const updates = events.map(({ eventId, payload }) => ({ eventId, update: payload as KpiUpdated }));
    const kpiIds = new Set(updates.flatMap(({ update }) => update.affectedKpiIds));
    const subscribers = (await subscribersOf(db, [...kpiIds])).map((row) => ({ ...row, group: groupOf(row) }));
    return updates.flatMap(({ eventId, update }) => {
      const affected = new Set(update.affectedKpiIds);
      const groups = new Map<string, [Subscriber, ...Subscriber[]]>();
      for (const subscriber of subscribers.filter(({ kpi_id }) => affected.has(kpi_id))) {
        const group = groups.get(subscriber.group);
        if (group) group.push(subscriber);
        else groups.set(subscriber.group, [subscriber]);
      }
      const payload = kpiUpdatedPayload(update);
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

  /** Secrets are compared in plain text, because sealed ones always differ. One that cannot be opened forms its own group. */
  function groupOf({ id, callback_url, retry_num, secret }: Subscriber): string {
    return JSON.stringify([
      callback_url,
      retry_num,
      secret === null ? null : (sealedSecrets.tryOpen(id, secret) ?? id),
    ]);
  }

  return {
    name: "webhooks",
    topics: [KPI_UPDATED_TOPIC, ...Object.keys(ALERT_OF_TOPIC)],
    timeoutMs: TIMEOUT_MS,
    // The last failed attempt drops the event, so that takes hours of failures.
    retry: { maxAttempts: 100, baseMs: 1_000, factor: 2, capMs: 300_000, jitter: 0.2 },
    deliver: (event) => incoming.add(event),
  };
}

function oneOfEachTeamFirst(group: readonly Subscriber[]): number[] {
  const first = new Map(group.toReversed().map(({ team_name, id }) => [team_name, id]));
  const leads = [...first.values()].sort((a, b) => a - b);
  return [...new Set([...leads, ...group.map(({ id }) => id)])];
}
