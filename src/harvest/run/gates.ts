/**
 * Declares the gates of the sources that run, for a snapshot as rarely as it can be. A gate that several endpoints name has the
 * strictest limits of all of them, each as its newest plan says.
 */
import type { Db, Tx } from "../../kernel/data/db.ts";
import type { GateDeclaration } from "../../kernel/gate/declaration.ts";
import type { Gates } from "../../kernel/gate/gates.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { baseKeysOf, gatesOfSnapshot, type Limited, strictest } from "../spec/gates.ts";
import { newestLimits } from "../store/queue/rate-limits.ts";
import type { PreparedTask } from "./task.ts";

interface DeclareDeps {
  db: Pick<Db, "tx">;
  gates: Pick<Gates, "declare">;
  clock: Clock;
}

/** A gate that an operator has withdrawn has the limits of its source again after this. */
const AGAIN_MS = 60_000;
const KEPT_MAX = 1_000;

/** The newest plan of an endpoint decides what it declares, so plans that are older change nothing. */
export function createDeclareGates({ db, gates, clock }: DeclareDeps): (task: PreparedTask) => Promise<void> {
  const done = new Map<string, { plannedMs: number; atMs: number }>();
  return async ({ context: { spec_fingerprint, planned_at }, source }) => {
    const last = done.get(spec_fingerprint);
    const nowMs = clock.now();
    if (last && planned_at.getTime() <= last.plannedMs && nowMs < last.atMs + AGAIN_MS) return;
    const plannedMs = Math.max(planned_at.getTime(), last?.plannedMs ?? 0);
    await db.tx(async (tx) => {
      for (const [asOfMs, some] of await declarations(tx, source.snapshot, plannedMs)) {
        await gates.declare(tx, some, new Date(asOfMs));
      }
    });
    if (done.size >= KEPT_MAX) done.clear();
    done.set(spec_fingerprint, { plannedMs, atMs: nowMs });
  };
}

/** The gates of a snapshot, by the time of the newest plan that declares them. */
async function declarations(tx: Tx, snapshot: Limited, plannedMs: number): Promise<Map<number, GateDeclaration[]>> {
  const own = gatesOfSnapshot(snapshot);
  const newest = await newestLimits(tx, baseKeysOf(own));
  const shared = strictest(
    newest.map(({ planned_at, list, detail }) => ({
      snapshot: { spec: { rateLimit: list }, ...(detail ? { detail: { rateLimit: detail } } : {}) },
      plannedAt: planned_at,
    })),
  );
  const byKey = new Map(shared.map((one) => [one.gate.key, one]));
  const byTime = new Map<number, GateDeclaration[]>();
  for (const gate of own) {
    // A gate that no newest plan names any more is still that of the plan which runs.
    const found = byKey.get(gate.key) ?? { gate, asOf: new Date(plannedMs) };
    const asOfMs = found.asOf.getTime();
    byTime.set(asOfMs, [...(byTime.get(asOfMs) ?? []), found.gate]);
  }
  return byTime;
}
