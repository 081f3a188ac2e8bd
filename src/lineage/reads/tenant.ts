/** The tenant of a read request: the one that it names, or the one that its key is bound to. */
import type { Caller } from "../../kernel/auth/scopes.ts";
import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import { lineageError } from "../catalogue.ts";
import { requireTenantScope } from "../tenants/scope.ts";
import { tenantExists } from "./store/statistics.ts";

export async function readTenant(db: Db, caller: Caller, asked: string | undefined): Promise<string> {
  const tenantId = asked ?? caller.tenantId;
  if (tenantId === null) throw invalid("The key is bound to no tenant, so say which one with `?tenant=ID`");
  requireTenantScope(caller, tenantId);
  if (!(await tenantExists(db, tenantId))) throw lineageError("TENANT_NOT_FOUND", { tenantId });
  return tenantId;
}
