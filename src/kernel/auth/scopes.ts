/** The scopes of keys. `admin` includes all others; apart from that no scope includes another, not even write read. */

/** By name, such as `files:read`. */
export type ScopeTable = Readonly<Record<string, ScopeRule>>;

export interface ScopeRule {
  /** Whether a key with a tenant can use it. */
  readonly forTenants?: true;
}

export const KERNEL_SCOPES = { admin: {} } as const satisfies ScopeTable;

/** The sender of a request. */
export interface Caller {
  /** For the audit log: the key's name, or `anonymous`. */
  name: string;
  keyId: string | null;
  scopes: readonly string[];
  /** A key with a tenant can only use scopes for tenants. */
  tenantId: string | null;
  source: string | null;
  rateLimitPerMinute: number | null;
  /** When the token or the session of the caller ends at the latest; keys do not expire. */
  expiresAtMs?: number;
  /** It has the key of the environment, which has no id. */
  isEnvironmentAdmin?: true;
  /** It signed in to the console with its key. */
  session?: CallerSession;
}

export interface CallerSession {
  /** The hash of its token, as text. */
  id: string;
  /** When it ends if it is not used until then. */
  expiresAt: Date;
}

/** Why the caller may not, to follow "This key may not do that: "; undefined if it may. */
export function whyNot({ scopes, tenantId }: Caller, scope: string, table: ScopeTable): string | undefined {
  if (tenantId !== null && !table[scope]?.forTenants) {
    return `it is bound to a tenant and reaches ${reachOfTenants(table)} only`;
  }
  return scopes.includes("admin") || scopes.includes(scope) ? undefined : `it lacks the scope ${scope}`;
}

/** `lists` for `lists:read` and `lists:write`. */
function reachOfTenants(table: ScopeTable): string {
  const names = Object.keys(table).filter((name) => table[name]?.forTenants);
  return [...new Set(names.map((name) => name.split(":", 1)[0]))].join(" and ");
}
