/** A rate gate as the API answers it: to operators, and to modules that show the gates which they pass. */
import { Type } from "typebox";
import { Nullable, ReplyTime } from "../http/schemas.ts";
import type { GateRow } from "./declaration-store.ts";

const PerSecond = Type.Number({ description: "Requests per second." });
export const Gate = Type.Object({
  key: Type.String(),
  declared: Type.Boolean({ description: "Else it has the limits of an undeclared gate." }),
  declaredBy: Nullable(
    Type.Enum(["operator", "source"] as const, {
      description: "What an operator declares is not replaced by the definition of a source.",
    }),
  ),
  ratePerSec: PerSecond,
  burst: Type.Integer(),
  concurrency: Nullable(Type.Integer()),
  warmupSec: Type.Number(),
  floorPerSec: PerSecond,
  cutFactor: Type.Number(),
  riseAfterSec: Type.Number(),
  headerRatePerSec: Nullable(Type.Number({ description: "The limit that the service has sent in a header." })),
  headerConcurrency: Nullable(Type.Integer()),
  currentRatePerSec: Type.Number({ description: "After cuts, headers and warm-up." }),
  lastCutAt: Nullable(ReplyTime),
  cooldownUntil: Nullable(ReplyTime),
  backlogMs: Type.Number({ description: "How far ahead permits are reserved." }),
  slotsTaken: Type.Integer(),
  quotas: Type.Array(
    Type.Object({
      unit: Type.String(),
      windowSec: Type.Number(),
      limit: Type.Number(),
      heldBack: Type.Number(),
      used: Type.Number(),
      remaining: Type.Number(),
      resetAt: ReplyTime,
    }),
  ),
});

export function gateReply(row: GateRow) {
  return {
    key: row.key,
    declared: row.declared_by !== null,
    declaredBy: row.declared_by,
    ratePerSec: row.rate_per_sec,
    burst: row.burst,
    concurrency: row.concurrency,
    warmupSec: row.warmup_sec,
    floorPerSec: row.floor_per_sec,
    cutFactor: row.cut_factor,
    riseAfterSec: row.rise_after_sec,
    headerRatePerSec: row.header_rate_per_sec,
    headerConcurrency: row.header_concurrency,
    currentRatePerSec: row.current_rate_per_sec,
    lastCutAt: row.last_cut_at,
    cooldownUntil: row.cooldown_until,
    backlogMs: row.backlog_ms,
    slotsTaken: row.slots_taken,
    quotas: row.quotas,
  };
}
