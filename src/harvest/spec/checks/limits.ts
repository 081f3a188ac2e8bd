/** Rates, retries and batches: none goes beyond what the source allows. */
import { faultOf, WINDOW_SEC_MAX } from "../../../kernel/gate/declaration.ts";
import { durationMs } from "../duration.ts";
import type { CheckInput, Finding } from "./check.ts";

/** 4.17, number 6. */
export function* rateIsAllowed({ policy: { rateLimit } }: CheckInput): Iterable<Finding> {
  const { refillRatePerSec = 0, providerRatePerSec = Number.POSITIVE_INFINITY } = rateLimit;
  if (refillRatePerSec > providerRatePerSec) {
    yield {
      field: "rateLimit.refillRatePerSec",
      reason: `It is ${refillRatePerSec}; the provider allows ${providerRatePerSec} requests a second.`,
    };
  }
}

export function* rateFitsCredential({ policy: { rateLimit, auth } }: CheckInput): Iterable<Finding> {
  if (rateLimit.refillRateWithCredential !== undefined && auth.type === "NONE") {
    yield {
      field: "rateLimit.refillRateWithCredential",
      reason: "The endpoint sends no credential (`auth.type` is NONE).",
    };
  }
}

/** The gate refuses a burst that is more than a second's requests, at either rate. */
export function* burstFitsRate({ policy: { rateLimit } }: CheckInput): Iterable<Finding> {
  const { refillRatePerSec = 1, refillRateWithCredential, burstCapacity = 1 } = rateLimit;
  const ratePerSec = Math.min(refillRatePerSec, refillRateWithCredential ?? refillRatePerSec);
  const fault = faultOf({ ratePerSec, burst: burstCapacity });
  if (fault !== undefined) yield { field: "rateLimit.burstCapacity", reason: `The gate refuses it: ${fault}.` };
}

export function* keysAreNames({ policy: { rateLimit } }: CheckInput): Iterable<Finding> {
  const keys = rateLimit.keys ?? [];
  for (const [index, key] of keys.entries()) {
    const field = `rateLimit.keys[${index}]`;
    if (key.includes("${")) yield { field, reason: "A key is not a template." };
    if (keys.indexOf(key) !== index) yield { field, reason: `The key \`${key}\` is there twice.` };
  }
}

export function* quotasAreReadable({ policy: { rateLimit } }: CheckInput): Iterable<Finding> {
  const { quotas = [], headerWindow } = rateLimit;
  const reason = "It is not a duration from PT1S to P367D.";
  const isWindow = (ms: number | undefined) => ms && ms <= WINDOW_SEC_MAX * 1_000;
  if (headerWindow !== undefined && !isWindow(durationMs(headerWindow))) {
    yield { field: "rateLimit.headerWindow", reason };
  }
  for (const [index, { window, unit }] of quotas.entries()) {
    const ms = durationMs(window);
    if (!isWindow(ms)) yield { field: `rateLimit.quotas[${index}].window`, reason };
    const first = quotas.findIndex((quota) => quota.unit === unit && durationMs(quota.window) === ms);
    if (first !== index)
      yield { field: `rateLimit.quotas[${index}]`, reason: "There is another quota of its unit and window." };
  }
}

export function* priceHasQuota({ policy: { rateLimit } }: CheckInput): Iterable<Finding> {
  const { priceUsdMicros, quotas = [] } = rateLimit;
  if (priceUsdMicros === undefined || quotas.some(({ unit }) => unit === "usd_micros")) return;
  yield { field: "rateLimit.priceUsdMicros", reason: "It is counted in a quota of `usd_micros`, and there is none." };
}

/** 4.17, number 6. */
export function* retriesGrow({ policy: { retry } }: CheckInput): Iterable<Finding> {
  const { baseMs = 0, capMs = 0 } = retry;
  if (baseMs > capMs) yield { field: "retry.baseMs", reason: `It is ${baseMs}; \`capMs\` is ${capMs}.` };
}

/** 3.3.3. */
export function* batchesAreServed({ policy: { batching } }: CheckInput): Iterable<Finding> {
  const { idBatchSize = 0, idBatchSizeMax = Number.POSITIVE_INFINITY } = batching;
  if (idBatchSize > idBatchSizeMax) {
    yield {
      field: "batching.idBatchSize",
      reason: `It is ${idBatchSize}; the source answers at most ${idBatchSizeMax} ids.`,
    };
  }
}
