/**
 * Replies of tenants, declared once for the server and the page. `Time` is a `Date` where the server makes a reply, and text where it
 * is read. The page imports these types from here, so this file imports nothing but types.
 */
import type { TenantState } from "./states.ts";

export type { TenantState };

export interface Tenant<Time = string> {
  id: number;
  code: string;
  name: string;
  state: TenantState;
  cutoverTime: Time | null;
  /** Null: that of the server. */
  rateLimitPerMinute: number | null;
  bodyLimitBytes: number | null;
  createdAt: Time;
  updatedAt: Time;
}

export interface TenantsReply<Time = string> {
  items: readonly Tenant<Time>[];
  page: number;
  size: number;
  total: number;
}
