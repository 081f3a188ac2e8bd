/** Invariants of a module's rows, as SQL that finds violations: for `millrace doctor` and for tests. */

import type { Finding } from "../doctor.ts";
import { counted } from "../text/sentences.ts";
import type { Db } from "./db.ts";
import { type Statement, statement } from "./statement.ts";

export interface Violation {
  /** The invariant, as a sentence without its full stop. */
  rule: string;
  count: number;
  example: string | null;
}

export interface Invariant {
  rule: string;
  violations: Statement<{ count: number; example: string | null }>;
}

/** `rows` is a query for the rows that violate the rule, each with an `example` that names it. */
export function invariant(name: string, rule: string, rows: string): Invariant {
  const text = `select count(*)::int as count, min(example) as example from (${rows}) v`;
  return { rule, violations: statement(name, text) };
}

/** All invariants that do not hold. Slow on a very large installation. */
export async function violationsOf(db: Db, invariants: readonly Invariant[]): Promise<Violation[]> {
  const found = await Promise.all(
    invariants.map(async ({ rule, violations }) => {
      const [row] = await db.read(violations);
      return { rule, count: row?.count ?? 0, example: row?.example ?? null };
    }),
  );
  return found.filter(({ count }) => count > 0);
}

export interface LeaseHealth {
  leased: number;
  /** Items whose session no longer exists. */
  orphaned: number;
  /** How long ago the session of an item expired that was not reclaimed. */
  overdue_seconds: number;
}

/** The health of leases that are held by session; `leased` is the condition for leased items. */
export function leaseHealthOf(name: string, table: string, leased: string): (db: Db) => Promise<LeaseHealth> {
  const health = statement<LeaseHealth>(
    name,
    `select (select count(*)::int from ${table} t where ${leased}) as leased,
            (select count(*)::int from ${table} t where ${leased} and not exists (
               select from kernel.session s where s.id = t.session_id)) as orphaned,
            coalesce((select max(extract(epoch from now() - s.expires_at)) from ${table} t
               join kernel.session s on s.id = t.session_id where ${leased} and s.expires_at <= now()), 0)::float8
              as overdue_seconds`,
  );
  return async (db) => {
    const [row] = await db.read(health);
    if (!row) throw new Error("the query of the leases returned no row");
    return row;
  };
}

const OVERDUE_SECONDS_WARN = 30;

/** The doctor's finding about leases; `words` are the nouns of the module: nodes and their worker, runs and their process. */
export function leaseFinding(
  { leased, orphaned, overdue_seconds }: LeaseHealth,
  words: { items: string; item: string; holder: string; reclaimedBy: "scheduler" | "worker" },
): Omit<Finding, "check"> {
  const found = `In flight: ${counted(leased, words.item, words.items)}.`;
  if (overdue_seconds < OVERDUE_SECONDS_WARN && orphaned === 0) return { verdict: "ok", found };
  const late =
    orphaned > 0
      ? `Held by a process that no longer exists: ${orphaned}.`
      : `The session of one ${words.holder} expired ${Math.round(overdue_seconds)} s ago, and its ${words.item} was not reclaimed.`;
  return {
    verdict: "broken",
    found: `${found} ${late}`,
    advice: `No process reclaims them: check that one runs with the role \`${words.reclaimedBy}\`, and read its log.`,
  };
}

/** The doctor's finding about invariants; `evidence` is what a bug report should include. */
export function stateFinding(
  violations: readonly Violation[],
  { sound, evidence }: { sound: string; evidence: string },
): Omit<Finding, "check"> {
  if (violations.length === 0) return { verdict: "ok", found: sound };
  const listed = violations.map(({ rule, count, example }) => `${rule} (violations: ${count}, for example ${example})`);
  return {
    verdict: "broken",
    found: `Violated: ${listed.join("; ")}.`,
    advice: `This is a bug. Please report it with ${evidence}.`,
  };
}
