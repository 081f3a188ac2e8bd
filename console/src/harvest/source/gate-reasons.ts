/** Why requests wait at a gate, the strongest reason first. */
import type { Gate } from "../api.ts";

export type GateReason =
  | { why: "cooldown"; until: string }
  | { why: "quota"; unit: Gate["quotas"][number]["unit"] }
  | { why: "cut"; at: string }
  | { why: "header"; ratePerSec: number }
  | { why: "warm" }
  | { why: "places" }
  | { why: "queue"; ms: number };

/** Rates are computed: a difference below a thousandth is none. */
const NEARLY_ALL = 0.999;
const BACKLOG_MS = 1_000;

export function reasonsOf(gate: Gate): GateReason[] {
  const reasons: GateReason[] = [];
  const { cooldownUntil, quotas, currentRatePerSec, ratePerSec, headerRatePerSec, lastCutAt, backlogMs } = gate;
  if (cooldownUntil !== null) reasons.push({ why: "cooldown", until: cooldownUntil });
  for (const { unit, used, limit, heldBack } of quotas)
    if (used >= limit - Math.floor(limit * heldBack)) reasons.push({ why: "quota", unit });
  const limit = Math.min(ratePerSec, headerRatePerSec ?? ratePerSec);
  if (limit < ratePerSec * NEARLY_ALL) reasons.push({ why: "header", ratePerSec: limit });
  if (currentRatePerSec < limit * NEARLY_ALL)
    reasons.push(lastCutAt === null ? { why: "warm" } : { why: "cut", at: lastCutAt });
  const places = Math.min(gate.concurrency ?? Infinity, gate.headerConcurrency ?? Infinity);
  if (gate.slotsTaken >= places) reasons.push({ why: "places" });
  if (cooldownUntil === null && backlogMs >= BACKLOG_MS) reasons.push({ why: "queue", ms: backlogMs });
  return reasons;
}
