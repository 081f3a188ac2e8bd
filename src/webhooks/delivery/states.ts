/**
 * The states of a delivery.
 *
 *     PENDING ──claimed──▶ SENDING ──2xx──▶ DELIVERED
 *       ▲ ▲                 │ │ ├──no retry is left, or none would help──▶ FAILED
 *       │ └──retry later,───┘ │ └──no subscription is enabled──▶ CANCELLED
 *       │    released         └──its process was lost──▶ PENDING; FAILED after too many
 *       └──redeliver, recover── DELIVERED | FAILED | CANCELLED
 *
 * Only the holder of the fence moves a delivery out of SENDING, or a reclaim after the holder's session has expired. Requests
 * of a person never do. The moves are made by the lease and the statements in store/deliveries.ts.
 */

export const DELIVERY_STATUSES = ["PENDING", "SENDING", "DELIVERED", "FAILED", "CANCELLED"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Those of deliveries that have ended, of which many can be sent again together. */
export const RECOVERABLE_STATUSES = ["FAILED", "CANCELLED", "DELIVERED"] as const satisfies readonly DeliveryStatus[];
export type RecoverableStatus = (typeof RECOVERABLE_STATUSES)[number];

/** Every legal move. */
export const DELIVERY_NEXT = {
  PENDING: ["SENDING", "PENDING"], // redelivered before it was due: now due at once
  SENDING: ["DELIVERED", "PENDING", "FAILED", "CANCELLED"],
  DELIVERED: ["PENDING"],
  FAILED: ["PENDING"],
  CANCELLED: ["PENDING"],
} as const satisfies Record<DeliveryStatus, readonly DeliveryStatus[]>;
