/**
 * Replies to administrators, declared once for the server and the page. `Time` is a `Date` where the server makes a reply, and text
 * where it is read. The page imports these types from here, so this file imports nothing.
 */

export interface KeyItem<Time = string> {
  id: string;
  name: string;
  /** Its first characters. */
  hint: string;
  scopes: readonly string[];
  tenantId?: number;
  source?: string;
  rateLimitPerMinute?: number;
  createdAt: Time;
  createdBy: string;
  /** Its last use, up to five minutes late. */
  usedAt?: Time;
  revokedAt?: Time;
}

export interface KeysReply<Time = string> {
  items: readonly KeyItem<Time>[];
  /** Those that a key can have. */
  scopes: readonly string[];
}

export interface AuditItem<Time = string> {
  id: string;
  at: Time;
  actor: string;
  keyId: string | null;
  action: string;
  target: string;
  details: unknown;
  address: string;
  requestId: string;
}

export interface AuditPage<Time = string> {
  items: readonly AuditItem<Time>[];
  next: string | null;
  /** That the log has. */
  actions: readonly string[];
}

export interface Finding {
  /** The name of the check. */
  check: string;
  verdict: "ok" | "warning" | "broken";
  /** The result, as a sentence. */
  found: string;
  /** What to do about it, unless the verdict is `ok`. */
  advice?: string;
  /** The overview has an entry for each thing that it names. */
  isListed?: true;
}

/** `unset`: there is no value and no default. */
export type Origin = "default" | "environment" | "flag" | "file" | "unset";

export interface SettingInForce {
  /** The variable of the environment, or the path in the file: `tracking.lostLimit`. */
  name: string;
  /** As it would be written; absent if it is unset or secret. */
  value?: string;
  isSecret: boolean;
  origin: Origin;
  /** The variable, the flag, or the file with line and column. */
  from?: string;
  description?: string;
}
