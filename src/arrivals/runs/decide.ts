/**
 * Decides whether a model runs for an opTime, from what it needs, what has arrived and what its last success used. Every
 * decision of the module is made here: after an arrival, after a run, when a deadline passes, and to explain why.
 */
import type { RerunPolicy } from "./states.ts";

/** One opTime of one table that a model depends on. */
export interface Need {
  table: string;
  opTime: string;
  optional: boolean;
  /** When it is late. The model waits for an optional table until then; without a deadline it does not wait. */
  deadlineMs: number | null;
  quietSeconds: number;
}

export interface Arrived {
  sequence: string;
  atMs: number;
  by?: string | null;
}

/** The arrivals that a run used: the sequence of each, by `keyOf`. */
export type Consumed = Readonly<Record<string, string>>;

export interface Facts {
  needs: readonly Need[];
  arrived: ReadonlyMap<string, Arrived>;
  /** Of the last success; null if there was none. */
  consumed: Consumed | null;
  rerun: RerunPolicy;
  nowMs: number;
}

export type Verdict =
  | { kind: "waiting"; missing: Need[] }
  | { kind: "quiet"; dueMs: number }
  | { kind: "asking" | "ignored" | "ready" | "nothing new" };

export function keyOf({ table, opTime }: { table: string; opTime: string }): string {
  return `${table} ${opTime}`;
}

export function decide({ needs, arrived, consumed, rerun, nowMs }: Facts): Verdict {
  const missing = needs.filter((need) => !arrived.has(keyOf(need)) && isWaitedFor(need, nowMs));
  if (missing.length > 0) return { kind: "waiting", missing };
  if (consumed && !hasNewer(needs, arrived, consumed)) return { kind: "nothing new" };
  if (consumed && rerun !== "auto") return { kind: rerun === "ask" ? "asking" : "ignored" };
  const quietUntil = needs.map((need) => {
    const last = arrived.get(keyOf(need));
    return last && need.quietSeconds > 0 ? last.atMs + need.quietSeconds * 1000 : 0;
  });
  const dueMs = Math.max(0, ...quietUntil);
  return dueMs > nowMs ? { kind: "quiet", dueMs } : { kind: "ready" };
}

/** The arrivals that a run which starts now uses. */
export function consumedNow(needs: readonly Need[], arrived: ReadonlyMap<string, Arrived>): Consumed {
  return Object.fromEntries(
    needs.flatMap((need) => {
      const found = arrived.get(keyOf(need));
      return found ? [[keyOf(need), found.sequence]] : [];
    }),
  );
}

function isWaitedFor({ optional, deadlineMs }: Need, nowMs: number): boolean {
  return !optional || (deadlineMs !== null && deadlineMs > nowMs);
}

function hasNewer(needs: readonly Need[], arrived: ReadonlyMap<string, Arrived>, consumed: Consumed): boolean {
  return needs.some((need) => {
    const found = arrived.get(keyOf(need));
    if (!found) return false;
    const used = consumed[keyOf(need)];
    return used === undefined || BigInt(found.sequence) > BigInt(used);
  });
}
