/** Definitions whose rates, quotas, retries or sizes contradict each other. */
import { key, list, testBad, twoPhase } from "../bad-definition.fixture.ts";

testBad([
  {
    check: "rateIsAllowed",
    change: list({ "rateLimit.refillRatePerSec": 6 }),
    table: "reg_prov_rate_limit_cfg",
    field: "rateLimit.refillRatePerSec",
    reason: "It is 6; the provider allows 5 requests a second.",
  },
  {
    check: "retriesGrow",
    change: list({ "retry.baseMs": 60_000 }),
    table: "reg_prov_retry_cfg",
    field: "retry.baseMs",
    reason: "It is 60000; `capMs` is 30000.",
  },
  {
    check: "batchesAreServed",
    change: { "endpoints.details.batching": { idBatchSize: 300, idBatchSizeMax: 200 } },
    input: twoPhase,
    table: "reg_prov_batching_cfg",
    field: "detail.batching.idBatchSize",
    reason: "It is 300; the source answers at most 200 ids.",
  },
  {
    check: "rateFitsCredential",
    change: list({ "rateLimit.refillRateWithCredential": 9 }),
    table: "reg_prov_rate_limit_cfg",
    field: "rateLimit.refillRateWithCredential",
    reason: "The endpoint sends no credential (`auth.type` is NONE).",
  },
  {
    check: "burstFitsRate",
    change: list({ "rateLimit.refillRatePerSec": 2.5, "rateLimit.burstCapacity": 3 }),
    table: "reg_prov_rate_limit_cfg",
    field: "rateLimit.burstCapacity",
    reason: /burst 3 is more than 2, the limit of a second/,
  },
  {
    check: "burstFitsRate",
    change: list({ ...key, "rateLimit.refillRateWithCredential": 2, "rateLimit.burstCapacity": 3 }),
    table: "reg_prov_rate_limit_cfg",
    field: "rateLimit.burstCapacity",
    reason: /burst 3 is more than 2, the limit of a second/,
  },
  {
    check: "quotasAreReadable",
    change: list({ "rateLimit.quotas": [{ unit: "requests", window: "P368D", limit: 5 }] }),
    table: "reg_prov_rate_limit_cfg",
    field: "rateLimit.quotas[0].window",
    reason: "It is not a duration from PT1S to P367D.",
  },
  {
    check: "quotasAreReadable",
    change: list({ "rateLimit.headerWindow": "PT0S" }),
    table: "reg_prov_rate_limit_cfg",
    field: "rateLimit.headerWindow",
    reason: "It is not a duration from PT1S to P367D.",
  },
  {
    check: "keysAreNames",
    change: list({ "rateLimit.keys": ["${params.genre}"] }),
    table: "reg_prov_rate_limit_cfg",
    field: "rateLimit.keys[0]",
    reason: "A key is not a template.",
  },
  {
    check: "quotasAreReadable",
    change: list({
      "rateLimit.quotas": [
        { unit: "requests", window: "P1D", limit: 5 },
        { unit: "requests", window: "PT24H", limit: 6 },
      ],
    }),
    table: "reg_prov_rate_limit_cfg",
    field: "rateLimit.quotas[1]",
    reason: "There is another quota of its unit and window.",
  },
  {
    check: "priceHasQuota",
    change: list({
      "rateLimit.priceUsdMicros": 100,
      "rateLimit.quotas": [{ unit: "credits", window: "P1D", limit: 5 }],
    }),
    table: "reg_prov_rate_limit_cfg",
    field: "rateLimit.priceUsdMicros",
    reason: "It is counted in a quota of `usd_micros`, and there is none.",
  },
]);
