/**
 * What the rate headers of a response say, in the forms that providers use: a limit and its interval (Crossref), a limit and
 * what remains of it until a reset (many), money (OpenAlex), a limit alone (NCBI). Whatever a provider sends, the gate can store it.
 */
import { CONCURRENCY_MAX, RATE_MAX, RATE_MIN } from "../../kernel/gate/declaration.ts";
import type { HeaderSignal } from "../../kernel/gate/permits.ts";

type Headers = Readonly<Record<string, string>>;
type QuotaReport = NonNullable<HeaderSignal["quotas"]>[number];

/** Undefined if the headers say nothing of limits. `headerWindowMs` is what a limit alone counts over, if the definition says so. */
export function providerSignal(headers: Headers, nowMs: number, headerWindowMs?: number): HeaderSignal | undefined {
  const limit = numberOf(headers["x-rate-limit-limit"] ?? headers["x-ratelimit-limit"]);
  const remaining = numberOf(headers["x-rate-limit-remaining"] ?? headers["x-ratelimit-remaining"]);
  const resetAfterMs = resetMs(headers["x-rate-limit-reset"] ?? headers["x-ratelimit-reset"], nowMs);
  const sentSec = secondsOf(headers["x-rate-limit-interval"] ?? headers["x-ratelimit-interval"]);
  const declaredSec = headerWindowMs === undefined ? undefined : headerWindowMs / 1_000;
  const intervalSec = sentSec ?? (resetAfterMs === undefined ? declaredSec : undefined);
  const concurrency = Math.floor(numberOf(headers["x-concurrency-limit"]) ?? 0);
  const quotas = [
    ...moneyQuota(headers, resetAfterMs),
    ...(limit !== undefined && remaining !== undefined && (resetAfterMs ?? 0) > 1_000 && !hasMoney(headers)
      ? [quota("requests", { limit, remaining, resetAfterMs })]
      : []),
  ];
  const ratePerSec = limit !== undefined && intervalSec !== undefined && limit > 0 ? limit / intervalSec : undefined;
  if (quotas.length === 0 && ratePerSec === undefined && concurrency < 1) return undefined;
  return {
    kind: "headers",
    ...(ratePerSec === undefined ? {} : { ratePerSec: Math.min(Math.max(ratePerSec, RATE_MIN), RATE_MAX) }),
    ...(concurrency < 1 ? {} : { concurrency: Math.min(concurrency, CONCURRENCY_MAX) }),
    ...(quotas.length === 0 ? {} : { quotas }),
  };
}

function hasMoney(headers: Headers): boolean {
  return headers["x-ratelimit-remaining-usd"] !== undefined;
}

function moneyQuota(headers: Headers, resetAfterMs: number | undefined): QuotaReport[] {
  const limit = numberOf(headers["x-ratelimit-limit-usd"]);
  const remaining = numberOf(headers["x-ratelimit-remaining-usd"]);
  if (remaining === undefined || resetAfterMs === undefined) return [];
  const micros = (usd: number) => Math.round(usd * 1e6);
  return [
    quota("usd_micros", {
      limit: limit === undefined ? undefined : micros(limit),
      remaining: micros(remaining),
      resetAfterMs,
    }),
  ];
}

/** A limit of 0 is no limit that can be kept: nothing remains of the declared one. */
function quota(
  unit: QuotaReport["unit"],
  { limit, remaining, resetAfterMs }: { [Name in "limit" | "remaining" | "resetAfterMs"]: number | undefined },
): QuotaReport {
  return {
    unit,
    remaining: remaining ?? 0,
    ...(limit === undefined || limit === 0 ? {} : { limit }),
    ...(resetAfterMs === undefined ? {} : { resetAfterMs }),
  };
}

/** Larger ones are not limits. */
const NUMBER_MAX = 1e9;
/** From here on a reset is a time since 1970, in seconds or milliseconds, and not the seconds until then. */
const EPOCH_SEC = 1e9;
const EPOCH_MS = 1e12;

function resetMs(text: string | undefined, nowMs: number): number | undefined {
  const value = numberOf(text, Number.MAX_SAFE_INTEGER);
  if (value === undefined || value < EPOCH_SEC) return value === undefined ? undefined : value * 1_000;
  return Math.max(0, (value < EPOCH_MS ? value * 1_000 : value) - nowMs);
}

/** A header that was sent twice has both values, joined by a comma: the first counts. */
function numberOf(text = "", max = NUMBER_MAX): number | undefined {
  const [, digits] = /^\s*(\d+(?:\.\d+)?)\s*(?:[,;]|$)/.exec(text) ?? [];
  const value = Number(digits);
  return value <= max ? value : undefined;
}

/** `1s`, `60`, `1m`. */
function secondsOf(text: string | undefined): number | undefined {
  const [, count, unit = "s"] = /^(\d+)\s*([smh])?/.exec(text ?? "") ?? [];
  const seconds = Number(count) * ({ s: 1, m: 60, h: 3_600 }[unit] ?? 1);
  return Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}
