/** Limits a key that is bound to a tenant to that tenant: any other is answered as unknown. */
import type { Caller } from "../../kernel/auth/scopes.ts";
import { lineageError } from "../catalogue.ts";

const TENANT_ID = /^(0|[1-9]\d{0,18})$/;
const BIGINT_MAX = 2n ** 63n - 1n;

/** Throws if the caller has no such tenant; also for text that is no tenant's id, so that it never reaches a statement. */
export function requireTenantScope({ tenantId: own }: Caller, tenantId: string): void {
  const isId = TENANT_ID.test(tenantId) && BigInt(tenantId) <= BIGINT_MAX;
  if (!isId || (own !== null && own !== tenantId)) throw lineageError("TENANT_NOT_FOUND", { tenantId });
}
