/** The gates of a source, as its definition declares them, and those that a request passes. */
import type { GateDeclaration } from "../../kernel/gate/declaration.ts";
import { durationMs } from "./duration.ts";
import type { RateLimitSpec } from "./snapshot.ts";

/** Where requests with a credential have a rate of their own, they have gates of their own: the source counts them apart. */
const CREDENTIAL_SUFFIX = ":key";

/** The widest comes first. */
export function gateKeysOf(limit: RateLimitSpec, hasCredential: boolean): string[] {
  const suffix = hasCredential && limit.refillRateWithCredential !== undefined ? CREDENTIAL_SUFFIX : "";
  return limit.keys.map((key) => `${key}${suffix}`);
}

/** Every gate of a request has the declared rate; quotas count at the widest one alone. */
function declarationsOf(limit: RateLimitSpec): GateDeclaration[] {
  const { refillRatePerSec, refillRateWithCredential } = limit;
  return [
    ...declared(limit, gateKeysOf(limit, false), refillRatePerSec),
    ...(refillRateWithCredential === undefined
      ? []
      : declared(limit, gateKeysOf(limit, true), refillRateWithCredential)),
  ];
}

function declared(limit: RateLimitSpec, keys: readonly string[], ratePerSec: number): GateDeclaration[] {
  const quotas = limit.quotas.map(({ unit, window, limit: most }) => ({
    unit,
    windowSec: (durationMs(window) ?? 0) / 1_000,
    limit: most,
  }));
  return keys.map(
    (key, index): GateDeclaration => ({
      key,
      ratePerSec,
      burst: limit.burstCapacity,
      warmupSec: limit.warmupSec,
      cutFactor: limit.demoteRate,
      ...(limit.concurrency === undefined ? {} : { concurrency: limit.concurrency }),
      ...(index > 0 || quotas.length === 0 ? {} : { quotas }),
    }),
  );
}

/** The rates of a snapshot, or of what is known of one. */
export interface Limited {
  spec: { rateLimit: RateLimitSpec };
  detail?: { rateLimit: RateLimitSpec } | undefined;
}

/** A gate, and the time of the newest plan that declares it. */
export interface TimedDeclaration {
  gate: GateDeclaration;
  asOf: Date;
}

/** All gates of a snapshot, each once. A gate that both of its endpoints name keeps the limits of both. */
export function gatesOfSnapshot(snapshot: Limited): GateDeclaration[] {
  return strictest([{ snapshot, plannedAt: new Date(0) }]).map(({ gate }) => gate);
}

/** The base keys that may lead to these gates: `shop` to `shop` and `shop:key`. */
export function baseKeysOf(gates: readonly GateDeclaration[]): string[] {
  const keys = gates.flatMap(({ key }) => [
    key,
    ...(key.endsWith(CREDENTIAL_SUFFIX) ? [key.slice(0, -CREDENTIAL_SUFFIX.length)] : []),
  ]);
  return [...new Set(keys)];
}

/**
 * All gates of the plans, each once. One that several of them name keeps the limits of all: the lowest of
 * each, and every quota. So it is the same whichever of them is planned or runs last.
 */
export function strictest(plans: readonly { snapshot: Limited; plannedAt: Date }[]): TimedDeclaration[] {
  const merged = new Map<string, TimedDeclaration>();
  for (const { snapshot, plannedAt } of plans) {
    const { spec, detail } = snapshot;
    for (const gate of [spec, ...(detail ? [detail] : [])].flatMap(({ rateLimit }) => declarationsOf(rateLimit))) {
      const other = merged.get(gate.key);
      if (!other) merged.set(gate.key, { gate, asOf: plannedAt });
      else {
        const asOf = other.asOf > plannedAt ? other.asOf : plannedAt;
        merged.set(gate.key, { gate: stricter(other.gate, gate), asOf });
      }
    }
  }
  return [...merged.values()];
}

function stricter(a: GateDeclaration, b: GateDeclaration): GateDeclaration {
  const concurrency = Math.min(a.concurrency ?? Number.POSITIVE_INFINITY, b.concurrency ?? Number.POSITIVE_INFINITY);
  const quotas = new Map<string, NonNullable<GateDeclaration["quotas"]>[number]>();
  for (const quota of [...(a.quotas ?? []), ...(b.quotas ?? [])]) {
    const id = `${quota.unit} ${quota.windowSec}`;
    quotas.set(id, { ...quota, limit: Math.min(quota.limit, quotas.get(id)?.limit ?? quota.limit) });
  }
  return {
    key: a.key,
    ratePerSec: Math.min(a.ratePerSec, b.ratePerSec),
    burst: Math.min(a.burst ?? 1, b.burst ?? 1),
    warmupSec: Math.max(a.warmupSec ?? 0, b.warmupSec ?? 0),
    cutFactor: Math.max(a.cutFactor ?? 2, b.cutFactor ?? 2),
    ...(Number.isFinite(concurrency) ? { concurrency } : {}),
    ...(quotas.size > 0 ? { quotas: [...quotas.values()] } : {}),
  };
}
