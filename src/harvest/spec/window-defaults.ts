/** The widths of a window in milliseconds, with those that follow from its granularity where nobody says otherwise. */
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";
import type { PolicyLayer } from "../definition/policy.ts";
import { durationMs } from "./duration.ts";

type WindowLayer = NonNullable<PolicyLayer["window"]>;

export const ALIGN_MS = { min: 60_000, hour: HOUR_MS, day: DAY_MS } as const;

export interface Widths {
  granularityMs: number;
  align: keyof typeof ALIGN_MS;
  minWindowMs: number;
  maxWindowMs: number;
  safetyLagMs: number;
}

/** Undefined while a width is missing or is no duration, which another check reports. */
export function windowDefaults(window: WindowLayer): Widths | undefined {
  const granularityMs = durationMs(window.granularity ?? "");
  if (granularityMs === undefined || granularityMs === 0) return undefined;
  const align = window.align ?? (granularityMs >= DAY_MS ? "day" : granularityMs >= HOUR_MS ? "hour" : "min");
  const minWindowMs = given(window.minWindow, Math.max(granularityMs, ALIGN_MS[align]));
  const maxWindowMs = given(window.maxWindow, Math.max(DAY_MS, minWindowMs ?? 0));
  const safetyLagMs = given(window.safetyLag, 0);
  if (!minWindowMs || !maxWindowMs || safetyLagMs === undefined) return undefined;
  return { granularityMs, align, minWindowMs, maxWindowMs, safetyLagMs };
}

function given(text: string | undefined, fallback: number): number | undefined {
  return text === undefined ? fallback : durationMs(text);
}
