/** The hint topics of webhooks. */

/** A delivery is due. */
export const DELIVERIES_TOPIC = "webhooks.deliveries";
