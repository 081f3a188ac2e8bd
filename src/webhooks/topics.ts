/** Wake-up hints of webhooks. */

/** A delivery is due. */
export const DELIVERIES_TOPIC = "webhooks.deliveries";
