/** What webhooks show on the overview. Addresses are shown without their parameters, which may be secrets. */

import { shownUrl } from "../kernel/net/outbound.ts";
import type { Need, OverviewPart } from "../kernel/overview/part.ts";
import { waitingOf } from "../kernel/overview/waiting-rows.ts";
import { alertNameOf } from "./alerts.ts";
import { endedDeliveries, failedReceivers, unhealthyEndpoints, waitingDeliveries } from "./store/overview.ts";

export const webhooksOverview: OverviewPart = {
  scope: "kpi:read",
  checkedKinds: ["receiver", "subscription"],
  async now(db) {
    const [failed, unhealthy, waiting] = await Promise.all([
      failedReceivers(db),
      unhealthyEndpoints(db),
      waitingDeliveries(db),
    ]);
    const listed = new Set(failed.map(({ callback_url }) => callback_url));
    return {
      needs: [
        ...failed.map(
          ({ id, callback_url, op_time, last_error, ended_at, deliveries }): Need => ({
            about: { kind: "delivery", id, ...(op_time !== null && { opTime: op_time }) },
            state: "failed",
            title: shown(callback_url),
            reason: last_error ?? "It could not be delivered.",
            count: deliveries,
            at: ended_at,
          }),
        ),
        // The deliveries that have failed are the entry of an endpoint that fails; if it is disabled, that is another thing to do.
        ...unhealthy
          .filter(({ callback_url, disabled_reason }) => disabled_reason !== null || !listed.has(callback_url))
          .map(
            ({ callback_url, subscription_id, since, disabled_reason }): Need => ({
              about:
                subscription_id === null
                  ? { kind: "receiver", id: shown(callback_url) }
                  : { kind: "subscription", id: String(subscription_id) },
              state: disabled_reason === null ? "failed" : "disabled",
              title: shown(callback_url),
              reason: disabled_reason ?? "No delivery has succeeded for more than an hour. They are tried again.",
              count: 1,
              at: since,
            }),
          ),
      ],
      waiting: waitingOf(waiting).map((one) => ({
        ...one,
        subject: one.cause === "receiver" && one.subject !== null ? shown(one.subject) : one.subject,
      })),
    };
  },
  async activity(db, range) {
    const ended = await endedDeliveries(db, range);
    const shownAs = distinctly(ended.lanes.map(({ id }) => id));
    const lanes = ended.lanes.map((lane) => {
      const id = shownAs.get(lane.id) ?? shown(lane.id);
      return { ...lane, id, name: id.replace(/^https?:\/\//, "") };
    });
    return { ended: [{ ...ended, lanes }] };
  },
};

/**
 * Addresses that differ only in what is not shown are numbered, in the order of the whole addresses, so that the numbers stay while
 * the addresses do. A digest would let one test a guess of the parameters.
 */
function distinctly(callbackUrls: readonly string[]): Map<string, string> {
  const counts = new Map<string, number>();
  return new Map(
    callbackUrls.toSorted().map((url) => {
      const text = shown(url);
      const count = (counts.get(text) ?? 0) + 1;
      counts.set(text, count);
      return [url, count === 1 ? text : `${text} (${count})`];
    }),
  );
}

function shown(callbackUrl: string): string {
  return alertNameOf(callbackUrl) === null ? shownUrl(callbackUrl) : callbackUrl;
}
