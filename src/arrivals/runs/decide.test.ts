/** The decision whether a model runs, in every case. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Arrived, consumedNow, decide, type Facts, keyOf, type Need } from "./decide.ts";
import { RERUN_POLICIES } from "./states.ts";

const NOW = Date.parse("2025-12-19T08:00:00Z");
const SECOND = 1_000;

function need(table: string, fields: Partial<Need> = {}): Need {
  return { table, opTime: "20251219", optional: false, deadlineMs: null, quietSeconds: 0, ...fields };
}

/** `{ A: 3 }`: table A has arrived with sequence 3, an hour ago. */
function arrived(sequences: Record<string, number>, atMs = NOW - 3_600 * SECOND): Map<string, Arrived> {
  const entries = Object.entries(sequences).map(([table, sequence]): [string, Arrived] => [
    keyOf(need(table)),
    { sequence: String(sequence), atMs },
  ]);
  return new Map(entries);
}

function consumed(sequences: Record<string, number>): Record<string, string> {
  return consumedNow(
    Object.keys(sequences).map((table) => need(table)),
    arrived(sequences),
  );
}

function verdict(fields: Partial<Facts>) {
  return decide({
    needs: [need("A"), need("B")],
    arrived: new Map(),
    consumed: null,
    rerun: "auto",
    nowMs: NOW,
    ...fields,
  });
}

describe("a model that has not run", () => {
  test("waits for what is missing, in the order of its needs", () => {
    expect(verdict({})).toEqual({ kind: "waiting", missing: [need("A"), need("B")] });
    expect(verdict({ arrived: arrived({ A: 1 }) })).toEqual({ kind: "waiting", missing: [need("B")] });
  });

  test.each(RERUN_POLICIES)("is ready once all tables have arrived, with rerun: %s", (rerun) => {
    expect(verdict({ arrived: arrived({ A: 1, B: 2 }), rerun })).toEqual({ kind: "ready" });
  });

  test("does not take one opTime of a table for another", () => {
    const needs = [need("A", { opTime: "20251218" })];
    expect(verdict({ needs, arrived: arrived({ A: 1 }) })).toEqual({ kind: "waiting", missing: needs });
  });
});

describe("a model that has succeeded", () => {
  const facts = { arrived: arrived({ A: 5, B: 2 }), consumed: consumed({ A: 4, B: 2 }) };

  test("runs again after a newer arrival", () => {
    expect(verdict(facts)).toEqual({ kind: "ready" });
  });

  test("follows its policy `ask` or `ignore`", () => {
    expect(verdict({ ...facts, rerun: "ask" })).toEqual({ kind: "asking" });
    expect(verdict({ ...facts, rerun: "ignore" })).toEqual({ kind: "ignored" });
  });

  test.each(RERUN_POLICIES)("has nothing to do when nothing is new, with rerun: %s", (rerun) => {
    expect(verdict({ ...facts, rerun, consumed: consumed({ A: 5, B: 2 }) })).toEqual({ kind: "nothing new" });
  });

  test("runs again for an optional table that was missing before", () => {
    expect(verdict({ ...facts, consumed: consumed({ A: 5 }) })).toEqual({ kind: "ready" });
  });

  test("compares sequences as numbers, however large", () => {
    const sequences = (a: string) => new Map([[keyOf(need("A")), { sequence: a, atMs: 0 }]]);
    const used = { [keyOf(need("A"))]: "9007199254740992" };
    const needs = [need("A")];
    expect(verdict({ needs, arrived: sequences("9007199254740993"), consumed: used })).toEqual({ kind: "ready" });
    expect(verdict({ needs, arrived: sequences("10"), consumed: { [keyOf(need("A"))]: "9" } })).toEqual({
      kind: "ready",
    });
  });

  test("waits when a table was added to its dependencies", () => {
    expect(verdict({ ...facts, needs: [need("A"), need("C")] })).toMatchObject({ kind: "waiting" });
  });
});

describe("an optional table", () => {
  const needs = (fields: Partial<Need>) => [need("A"), need("B", { optional: true, ...fields })];

  test("is not waited for", () => {
    expect(verdict({ needs: needs({}), arrived: arrived({ A: 1 }) })).toEqual({ kind: "ready" });
  });

  test("is waited for until its deadline", () => {
    const until = (deadlineMs: number) => verdict({ needs: needs({ deadlineMs }), arrived: arrived({ A: 1 }) });
    expect(until(NOW + 1)).toMatchObject({ kind: "waiting", missing: [{ table: "B" }] });
    expect(until(NOW)).toEqual({ kind: "ready" });
  });

  test("does not replace a required one", () => {
    expect(verdict({ needs: needs({}), arrived: arrived({ B: 1 }) })).toMatchObject({ missing: [{ table: "A" }] });
  });

  test("runs the model again when it arrives late", () => {
    const facts = { needs: needs({}), arrived: arrived({ A: 1, B: 2 }), consumed: consumed({ A: 1 }) };
    expect(verdict(facts)).toEqual({ kind: "ready" });
  });
});

describe("a quiet period", () => {
  test("counts from the newest arrival of each table that has one", () => {
    const needs = [need("A", { quietSeconds: 60 }), need("B", { quietSeconds: 10 }), need("C")];
    const times = new Map([
      ...arrived({ A: 1 }, NOW - 30 * SECOND),
      ...arrived({ B: 2 }, NOW - 5 * SECOND),
      ...arrived({ C: 3 }, NOW),
    ]);
    expect(verdict({ needs, arrived: times })).toEqual({ kind: "quiet", dueMs: NOW + 30 * SECOND });
    expect(verdict({ needs, arrived: times, nowMs: NOW + 30 * SECOND - 1 })).toMatchObject({ kind: "quiet" });
    expect(verdict({ needs, arrived: times, nowMs: NOW + 30 * SECOND })).toEqual({ kind: "ready" });
  });

  test("counts only when nothing else keeps the model from running", () => {
    const needs = [need("A", { quietSeconds: 60 })];
    const just = arrived({ A: 2 }, NOW);
    expect(verdict({ needs: [...needs, need("B")], arrived: just })).toMatchObject({ kind: "waiting" });
    expect(verdict({ needs, arrived: just, consumed: consumed({ A: 2 }) })).toEqual({ kind: "nothing new" });
    expect(verdict({ needs, arrived: just, consumed: consumed({ A: 1 }), rerun: "ask" })).toEqual({ kind: "asking" });
    expect(verdict({ needs, arrived: just, consumed: consumed({ A: 1 }) })).toMatchObject({ kind: "quiet" });
  });
});

test("a run uses those of its needs that have arrived, and nothing else", () => {
  expect(consumedNow([need("A"), need("B", { optional: true })], arrived({ A: 1, C: 3 }))).toEqual({
    "A 20251219": "1",
  });
});

describe("for random facts", () => {
  const tables = ["A", "B", "C", "D"];
  const needs = fc.uniqueArray(
    fc.record({
      table: fc.constantFrom(...tables),
      opTime: fc.constantFrom("20251218", "20251219"),
      optional: fc.boolean(),
      deadlineMs: fc.option(fc.constantFrom(NOW - 1, NOW + 1)),
      quietSeconds: fc.constantFrom(0, 0, 60),
    }),
    { selector: keyOf, minLength: 1 },
  );
  const keys = tables.flatMap((table) => ["20251218", "20251219"].map((opTime) => keyOf({ table, opTime })));
  const arrivals = fc
    .dictionary(
      fc.constantFrom(...keys),
      fc.record({ sequence: fc.integer({ min: 1, max: 50 }).map(String), atMs: fc.constantFrom(NOW - 7_200_000, NOW) }),
    )
    .map((found) => new Map(Object.entries(found)));
  const used = fc.option(fc.dictionary(fc.constantFrom(...keys), fc.integer({ min: 1, max: 50 }).map(String)));
  const facts = fc.record({
    needs,
    arrived: arrivals,
    consumed: used,
    rerun: fc.constantFrom(...RERUN_POLICIES),
    nowMs: fc.constant(NOW),
  });

  test("one more arrival never makes a model wait that was ready", () => {
    fc.assert(
      fc.property(facts, fc.constantFrom(...keys), (given, key) => {
        fc.pre(decide(given).kind === "ready");
        const newest = Math.max(0, ...[...given.arrived.values()].map(({ sequence }) => Number(sequence)));
        const more = new Map(given.arrived).set(key, { sequence: String(newest + 1), atMs: NOW });
        expect(decide({ ...given, arrived: more }).kind).toBeOneOf(["ready", "quiet"]);
      }),
    );
  });

  test("after a run that used everything, nothing is new until something arrives", () => {
    fc.assert(
      fc.property(facts, fc.nat(), (given, chosen) => {
        const { kind } = decide(given);
        fc.pre(kind !== "waiting");
        const after = { ...given, consumed: consumedNow(given.needs, given.arrived) };
        expect(decide(after)).toEqual({ kind: "nothing new" });

        const needed = given.needs[chosen % given.needs.length] as Need;
        const next = new Map(given.arrived).set(keyOf(needed), { sequence: "51", atMs: NOW - 7_200_000 });
        expect(decide({ ...after, arrived: next, rerun: "auto" }).kind).toBeOneOf(["ready", "quiet"]);
      }),
    );
  });

  test("a model waits only for needs that are missing, and no longer once they have arrived", () => {
    fc.assert(
      fc.property(facts, (given) => {
        const judged = decide(given);
        fc.pre(judged.kind === "waiting");
        if (judged.kind !== "waiting") return;
        const complete = new Map(given.arrived);
        for (const missing of judged.missing) {
          expect(given.needs).toContain(missing);
          expect(given.arrived.has(keyOf(missing))).toBe(false);
          complete.set(keyOf(missing), { sequence: "99", atMs: 0 });
        }
        expect(decide({ ...given, arrived: complete }).kind).not.toBe("waiting");
      }),
    );
  });
});
