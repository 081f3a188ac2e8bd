/**
 * The life of a tenant.
 *
 *     NEW ──:sync-start──▶ SYNCING ──:ready──▶ READY
 *      └───────────────:ready────────────────▶ │
 *                          ▲──── :sync-start ──┘
 *
 * - `NEW`: nothing is known of its assets. Events are kept, and wait.
 * - `SYNCING`: a full sync began at the cutover. Its own events are applied at once; all others wait.
 * - `READY`: what waited from the cutover on has been applied, and so is every event that comes. A new full sync begins again.
 */
export const TENANT_STATES = ["NEW", "SYNCING", "READY"] as const;
export type TenantState = (typeof TENANT_STATES)[number];

const NEXT = {
  NEW: ["SYNCING", "READY"],
  SYNCING: ["READY"],
  READY: ["SYNCING"],
} as const satisfies Record<TenantState, readonly TenantState[]>;

/** The states from which a tenant may come to this one. */
export function statesBefore(to: TenantState): TenantState[] {
  return TENANT_STATES.filter((from) => (NEXT[from] as readonly TenantState[]).includes(to));
}
