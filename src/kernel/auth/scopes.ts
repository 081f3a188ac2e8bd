/** What a key may do. `admin` includes everything; otherwise each scope stands for itself, so a writer need not be a reader. */

export const SCOPES = [
  "chain:read",
  "chain:write",
  "run:read",
  "run:write",
  "run:control",
  "kpi:read",
  "kpi:write",
  "pipeline:read",
  "pipeline:write",
  "harvest:read",
  "harvest:write",
  "harvest:control",
  "lineage:read",
  "lineage:write",
  "admin",
] as const;
export type Scope = (typeof SCOPES)[number];

/** Who makes a request. */
export interface Caller {
  /** For the audit log: the key's name, or `anonymous`. */
  name: string;
  keyId: string | null;
  scopes: readonly Scope[];
  /** A tenant-bound key reaches lineage only. */
  tenantId: string | null;
  source: string | null;
  rateLimitPerMinute: number | null;
}

export function mayDo(caller: Caller, scope: Scope): boolean {
  return whyNot(caller, scope) === undefined;
}

/** Why the caller may not do it, to be said after "This key may not do that: "; nothing if it may. */
export function whyNot({ scopes, tenantId }: Caller, scope: Scope): string | undefined {
  if (tenantId !== null && !scope.startsWith("lineage:")) return "it is bound to a tenant and reaches lineage only";
  return scopes.includes("admin") || scopes.includes(scope) ? undefined : `it lacks the scope ${scope}`;
}
