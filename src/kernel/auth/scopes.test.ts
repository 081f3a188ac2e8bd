/** What each scope allows. */
import { expect, test } from "vitest";
import { type Caller, KERNEL_SCOPES, type ScopeTable, whyNot } from "./scopes.ts";

const TABLE: ScopeTable = {
  "files:read": {},
  "files:write": {},
  "maps:read": { forTenants: true },
  "maps:write": { forTenants: true },
  ...KERNEL_SCOPES,
};
const SCOPES = Object.keys(TABLE);

const caller = (scopes: string[], tenantId: string | null = null): Caller => ({
  name: "x",
  keyId: null,
  scopes,
  tenantId,
  source: null,
  rateLimitPerMinute: null,
});
const allowed = (who: Caller) => SCOPES.filter((scope) => whyNot(who, scope, TABLE) === undefined);

test("each scope allows itself and nothing else, and admin everything", () => {
  for (const scope of SCOPES) expect(allowed(caller([scope]))).toEqual(scope === "admin" ? SCOPES : [scope]);
  expect(allowed(caller([]))).toEqual([]);
});

test("a caller with a tenant can only use its scopes for tenants", () => {
  expect(allowed(caller([...SCOPES], "1"))).toEqual(["maps:read", "maps:write"]);
  expect(allowed(caller(["admin"], "1"))).toEqual(["maps:read", "maps:write"]);
  expect(allowed(caller(["files:read", "maps:read"], "1"))).toEqual(["maps:read"]);
});

test("a refusal names the actual reason", () => {
  expect(whyNot(caller(["files:read"]), "maps:read", TABLE)).toBe("it lacks the scope maps:read");
  expect(whyNot(caller(["files:read"], "1"), "files:read", TABLE)).toBe(
    "it is bound to a tenant and reaches maps only",
  );
  expect(whyNot(caller(["maps:read"], "1"), "maps:write", TABLE)).toBe("it lacks the scope maps:write");
});
