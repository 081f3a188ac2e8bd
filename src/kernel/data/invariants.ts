/** What must always hold of a module's rows, as SQL that looks for those that disagree: for `millrace doctor` and for tests. */

import type { Finding } from "../doctor.ts";
import type { Db } from "./db.ts";
import { type Statement, statement } from "./statement.ts";

export interface Violation {
  /** What must hold. */
  rule: string;
  count: number;
  example: string | null;
}

export interface Invariant {
  rule: string;
  violations: Statement<{ count: number; example: string | null }>;
}

/** `rows` is a query for the rows that break the rule, each with an `example` to name it by. */
export function invariant(name: string, rule: string, rows: string): Invariant {
  const text = `select count(*)::int as count, min(example) as example from (${rows}) v`;
  return { rule, violations: statement(name, text) };
}

/** All rules that do not hold. Slow on a very large installation. */
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
  /** Their process is long gone. */
  orphaned: number;
  /** How long ago the process of one fell silent that was not taken back. */
  overdue_seconds: number;
}

/** How the items of a table are held that are leased by session: `leased` is the condition for those that are. */
export function leaseHealthOf(name: string, table: string, leased: string): (db: Db) => Promise<LeaseHealth> {
  const look = statement<LeaseHealth>(
    name,
    `select (select count(*)::int from ${table} t where ${leased}) as leased,
            (select count(*)::int from ${table} t where ${leased} and not exists (
               select from kernel.session s where s.id = t.session_id)) as orphaned,
            coalesce((select max(extract(epoch from now() - s.expires_at)) from ${table} t
               join kernel.session s on s.id = t.session_id where ${leased} and s.expires_at <= now()), 0)::float8
              as overdue_seconds`,
  );
  return async (db) => {
    const [row] = await db.read(look);
    if (!row) throw new Error("the look at the leases came back empty");
    return row;
  };
}

const OVERDUE_SECONDS_WARN = 30;

/** What the doctor says of leases; `words` are those of the module: nodes and their worker, runs and their process. */
export function leaseFinding(
  { leased, orphaned, overdue_seconds }: LeaseHealth,
  words: { items: string; item: string; holder: string; reclaimedBy: "scheduler" | "worker" },
): Omit<Finding, "check"> {
  const found = `${leased} ${words.items} are running.`;
  if (overdue_seconds < OVERDUE_SECONDS_WARN && orphaned === 0) return { verdict: "ok", found };
  const silentFor = `${Math.round(overdue_seconds)} s`;
  const late =
    orphaned > 0
      ? `${orphaned} of them belong to a process that is long gone.`
      : `The ${words.holder} of one fell silent ${silentFor} ago, and the ${words.item} was not taken back.`;
  return {
    verdict: "broken",
    found: `${found} ${late}`,
    advice: `No process takes work back: check that one runs with the role \`${words.reclaimedBy}\`, and its log.`,
  };
}

/** What the doctor says of what must always hold; `evidence` is what a report of the bug should bring. */
export function stateFinding(
  violations: readonly Violation[],
  { sound, evidence }: { sound: string; evidence: string },
): Omit<Finding, "check"> {
  if (violations.length === 0) return { verdict: "ok", found: sound };
  const listed = violations.map(({ rule, count, example }) => `${rule}: ${count} times not, for instance ${example}`);
  return {
    verdict: "broken",
    found: `What must always hold does not: ${listed.join("; ")}.`,
    advice: `This is a bug. Please report it with ${evidence}.`,
  };
}
