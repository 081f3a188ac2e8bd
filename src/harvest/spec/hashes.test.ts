import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compiledOf, type Draft, draft } from "./definition.fixture.ts";
import { sliceOf } from "./hashes.ts";

const DAY = {
  dimension: "TIME" as const,
  time: { from: new Date("2026-08-20T00:00:00Z"), to: new Date("2026-08-21T00:00:00Z") },
};
const list = (changes: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(changes).map(([path, value]) => [`endpoints.list.${path}`, value]));

function hashesOf(changes: Record<string, unknown>) {
  const compiled = compiledOf(draft(changes));
  const { sliceSignatureHash, exprHash } = sliceOf(compiled, DAY);
  return { spec: compiled.specFingerprint, proto: compiled.exprProtoHash, slice: sliceSignatureHash, expr: exprHash };
}

/** The same value with the keys of its objects in another order. */
function shuffled(value: unknown, random: () => number): unknown {
  if (Array.isArray(value)) return value.map((one) => shuffled(one, random));
  if (typeof value !== "object" || value === null) return value;
  const keys = Object.keys(value).map((key) => ({ key, place: random() }));
  keys.sort((a, b) => a.place - b.place);
  return Object.fromEntries(keys.map(({ key }) => [key, shuffled((value as Draft)[key], random)]));
}

describe("the fingerprint of a snapshot", () => {
  test("is the same whatever the order of keys, rows and sets", () => {
    const rich = list({
      params: [{ name: "a" }, { name: "genre" }],
      "response.ignoredPaths": ["$.a", "$.b"],
      "retry.retryableStatus": [503, 500],
      "http.headers": { "X-B": "b", "X-A": "a" },
      "rateLimit.quotas": [{ unit: "requests", window: "P1D", limit: 5 }],
    });
    const reordered = list({
      params: [{ name: "genre" }, { name: "a" }],
      "response.ignoredPaths": ["$.b", "$.a", "$.b"],
      "retry.retryableStatus": [500, 503],
      "http.headers": { "x-a": "a", "X-B": "b" },
      "rateLimit.quotas": [{ limit: 5, window: "PT24H", unit: "requests" }],
    });
    const expected = compiledOf(draft(rich)).specFingerprint;
    expect(compiledOf(draft(reordered)).specFingerprint).toBe(expected);
    fc.assert(
      fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (numbers) => {
        const random = () => numbers.next().value as number;
        expect(compiledOf(shuffled(draft(rich), random)).specFingerprint).toBe(expected);
      }),
      { numRuns: 25 },
    );
  });

  test("survives a store that orders the keys of objects in its own way", () => {
    const { snapshot, specFingerprint, exprProtoHash } = compiledOf(draft());
    const stored = JSON.parse(JSON.stringify(shuffled(snapshot, () => Math.random()))) as typeof snapshot;
    const again = { snapshot: stored, exprProtoHash };
    expect(sliceOf(again, DAY)).toEqual(sliceOf({ snapshot, exprProtoHash }, DAY));
    expect(specFingerprint).toMatch(/^[0-9a-f]{64}$/);
  });

  test.each([
    ["PT600S", "PT10M"],
    ["PT24H", "P1D"],
    ["PT1H60M", "PT2H"],
  ])("takes %s for %s", (one, other) => {
    expect(hashesOf(list({ "window.safetyLag": one }))).toEqual(hashesOf(list({ "window.safetyLag": other })));
  });

  test("is the same for a default that is written down", () => {
    expect(hashesOf(list({ "http.redirects": 0, "window.align": "day", bodies: "all" }))).toEqual(hashesOf({}));
  });

  test("is the same in another time zone", () => {
    const { TZ } = process.env;
    const expected = hashesOf(list({ "window.earliest": "2005-09-16" }));
    try {
      for (const zone of ["Pacific/Kiritimati", "America/St_Johns"]) {
        process.env["TZ"] = zone;
        expect(hashesOf(list({ "window.earliest": "2005-09-16" }))).toEqual(expected);
      }
    } finally {
      if (TZ === undefined) delete process.env["TZ"];
      else process.env["TZ"] = TZ;
    }
  });
});

describe("the hashes of slices", () => {
  test.each<[string, Record<string, unknown>]>([
    ["the budget", { "budget.maxRequests": 5 }],
    ["the rate", { "rateLimit.refillRatePerSec": 1 }],
    ["retries", { "retry.maxAttempts": 2 }],
    ["time-outs", { "http.readTimeoutMs": 1_000 }],
    ["the width of windows", { "window.maxWindow": "P7D" }],
    ["the safety lag", { "window.safetyLag": "P1D" }],
    ["what is kept of bodies", { bodies: "none" }],
    ["the landing", { landing: { table: "books" } }],
    ["the size of batches", { "batching.recordsPerStatement": 10 }],
  ])("do not change with %s; the fingerprint does", (_, change) => {
    const [before, after] = [hashesOf({}), hashesOf(list(change))];
    expect(after.spec).not.toBe(before.spec);
    expect({ ...after, spec: "" }).toEqual({ ...before, spec: "" });
  });

  test.each<[string, Record<string, unknown>]>([
    ["a parameter", { "http.query.sort": "asc" }],
    ["a path of the response", { "response.idPath": "$.key" }],
    ["the format of bounds", { "window.format": "yyyy/MM/dd" }],
    ["an output field", { outputFields: [] }],
    ["the pagination", { "pagination.pageSize": 10 }],
    ["a rule of the classifier", { classifier: [{ when: "status == 404", action: "FAIL", reason: "gone" }] }],
  ])("change with %s", (_, change) => {
    const [before, after] = [hashesOf({}), hashesOf(list(change))];
    for (const name of ["spec", "proto", "slice", "expr"] as const) expect(after[name], name).not.toBe(before[name]);
  });

  test("change with the bounds, and not with the budget of the slice", () => {
    const compiled = compiledOf(draft());
    const other = { ...DAY, time: { ...DAY.time, to: new Date("2026-08-22T00:00:00Z") } };
    const plain = sliceOf(compiled, DAY);
    const budget = { ...compiled.snapshot.spec.budget, maxRequests: 5 };
    const { spec } = compiled.snapshot;
    const budgeted = sliceOf({ ...compiled, snapshot: { ...compiled.snapshot, spec: { ...spec, budget } } }, DAY);
    expect(sliceOf(compiled, other).sliceSignatureHash).not.toBe(plain.sliceSignatureHash);
    expect(sliceOf(compiled, { dimension: "NONE" }).sliceSignatureHash).not.toBe(plain.sliceSignatureHash);
    expect(budgeted).toEqual({ ...plain, sliceSpec: { ...plain.sliceSpec, budget } });
    expect(plain.exprSnapshot).toEqual({
      bounds: { dimension: "TIME", time: { from: "2026-08-20T00:00:00.000Z", to: "2026-08-21T00:00:00.000Z" } },
      initial: { pageNo: 1, offset: 0 },
    });
  });
});
