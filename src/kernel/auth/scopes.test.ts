/** Who may do what, for every scope there is. */
import { expect, test } from "vitest";
import { type Caller, mayDo, SCOPES, type Scope, whyNot } from "./scopes.ts";

const caller = (scopes: Scope[], tenantId: string | null = null): Caller => ({
  name: "x",
  keyId: null,
  scopes,
  tenantId,
  source: null,
  rateLimitPerMinute: null,
});
const allowed = (who: Caller) => SCOPES.filter((scope) => mayDo(who, scope));

test("each scope allows itself and nothing else, and admin everything", () => {
  for (const scope of SCOPES) expect(allowed(caller([scope]))).toEqual(scope === "admin" ? SCOPES : [scope]);
  expect(allowed(caller([]))).toEqual([]);
});

test("a tenant-bound caller is kept to the lineage scopes that it has", () => {
  expect(allowed(caller([...SCOPES], "1"))).toEqual(["lineage:read", "lineage:write"]);
  expect(allowed(caller(["admin"], "1"))).toEqual(["lineage:read", "lineage:write"]);
  expect(allowed(caller(["pipeline:read", "lineage:read"], "1"))).toEqual(["lineage:read"]);
});

test("a refusal names what really stands in the way", () => {
  expect(whyNot(caller(["pipeline:read"]), "kpi:read")).toBe("it lacks the scope kpi:read");
  expect(whyNot(caller(["pipeline:read"], "1"), "pipeline:read")).toBe(
    "it is bound to a tenant and reaches lineage only",
  );
  expect(whyNot(caller(["lineage:read"], "1"), "lineage:write")).toBe("it lacks the scope lineage:write");
});
