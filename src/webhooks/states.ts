/**
 * The life of a delivery.
 *
 *     PENDING ──claimed──▶ SENDING ──2xx──▶ DELIVERED
 *       ▲ ▲                 │ │ ├──no retry is left, or none would help──▶ FAILED
 *       │ └──retry later,───┘ │ └──nobody wants it any more──▶ CANCELLED
 *       │    given back       └──its process fell silent──▶ PENDING; FAILED after too many
 *       └──redeliver, recover── DELIVERED | FAILED | CANCELLED
 *
 * Only the holder of the fence leaves SENDING, or whoever finds that the holder's session has expired. A person never
 * touches what is being sent. The moves are made by the lease and the statements in store/deliveries.ts.
 */

export const DELIVERY_STATUSES = ["PENDING", "SENDING", "DELIVERED", "FAILED", "CANCELLED"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Every legal move. */
export const DELIVERY_NEXT = {
  PENDING: ["SENDING", "PENDING"], // redelivered before its time: due at once
  SENDING: ["DELIVERED", "PENDING", "FAILED", "CANCELLED"],
  DELIVERED: ["PENDING"],
  FAILED: ["PENDING"],
  CANCELLED: ["PENDING"],
} as const satisfies Record<DeliveryStatus, readonly DeliveryStatus[]>;
