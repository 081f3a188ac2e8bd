/** Sources that announce no total: slices are cut by a hint, by a first page or by earlier windows, and are complete whatever was expected. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { endOf, plan } from "../harvest.fixture.ts";
import { type Asked, definitionOf, type Said, type Script, type TestItem, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

/** `count` items of a day, spread evenly over it. */
function spread(count: number, day = "2026-08-01"): TestItem[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${day}-${String(index).padStart(5, "0")}`,
    updated: new Date(Date.parse(day) + Math.floor((index * 86_400_000) / count)).toISOString(),
  }));
}

/** A correct source of these items that announces no total; `more` is what else it answers. */
function withoutTotal(items: readonly TestItem[], more: (found: number, asked: Asked) => Said = () => ({})): Script {
  return (asked) => {
    const { query } = asked;
    const [from = 0, to = 0] = ["from", "to"].map((name) => Date.parse(query.get(name) ?? ""));
    const found = items.filter(({ updated }) => Date.parse(updated) >= from && Date.parse(updated) < to);
    const offset = Number(query.get("offset") ?? 0);
    const { body = {}, headers = {} } = more(found.length, asked);
    return {
      headers,
      body: { ...(body as object), items: found.slice(offset, offset + Number(query.get("size") ?? 10)) },
    };
  };
}

/** Hours, of which a slice takes a day unless it is too large. */
const HOURS = {
  supportsUpdatedSince: true,
  granularity: "PT1H",
  format: "iso",
  align: "hour",
  minWindow: "PT1H",
  maxWindow: "P1D",
  sliceRecords: 25,
};
const untold = (window: object = {}) => ({ window: { ...HOURS, ...window }, response: { totalPath: undefined } });

interface Seen {
  status: string;
  hours: number;
  received: number;
  estimated: number | null;
  basis: string | null;
  reason: string | null;
}
const seen = (planId: string) =>
  database.query<Seen>(
    `select status_code as status, extract(epoch from window_to - window_from)::int / 3600 as hours, received::int, reason,
            (slice_spec #>> '{telemetry,totalEstimated}')::int as estimated, slice_spec #>> '{telemetry,basis}' as basis
     from harvest.ing_plan_slice where plan_id = $1 order by window_from, slice_id`,
    [planId],
  );
const complete = async (planId: string) => (await seen(planId)).filter(({ status }) => status === "COMPLETE");

describe("a hint of the source", () => {
  const byHeader = (found: number): Said => ({ headers: { "content-range": `items 0-9/${found}` } });

  test("in a header cuts a slice before it is read, and its records come once", async () => {
    const items = spread(95);
    const source = await harvests.source(withoutTotal(items, byHeader), untold({ hint: { header: "Content-Range" } }));
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({
      status: "COMPLETE",
      reconciliation: { expected: null, received: 95, inserted: 95, repeated: 0, gaps: 0 },
    });
    const [whole] = await seen(ended.planId);
    expect(whole).toMatchObject({
      status: "SPLIT",
      estimated: 95,
      basis: "HINT",
      reason: "the window has about 95 records by a hint of the source, more than 25 of one slice",
    });
    expect((await complete(ended.planId)).map(({ hours, received }) => [hours, received])).toEqual(
      [24, 24, 24, 23].map((received) => [6, received]),
    );
    const { body } = await harvests.api.get<{ items: object[] }>(`/api/v1/harvest/plans/${ended.planId}/slices`);
    expect(body.items[0]).toMatchObject({ status: "SPLIT", estimate: { records: 95, basis: "HINT" } });
  });

  test("at a path may count pages", async () => {
    const byPages = (found: number): Said => ({ body: { pages: Math.ceil(found / 10) } });
    const source = await harvests.source(
      withoutTotal(spread(60), byPages),
      untold({ hint: { path: "$.pages", unit: "PAGES" } }),
    );
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 60 } });
    expect((await seen(ended.planId))[0]).toMatchObject({ status: "SPLIT", estimated: 60 });
  });

  test("that is too low is no more than that: the slice is read to the end of its list", async () => {
    const source = await harvests.source(
      withoutTotal(spread(95), () => ({ body: { about: 3 } })),
      untold({ hint: { path: "$.about" } }),
    );
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "COMPLETE", slices: { COMPLETE: 1 }, reconciliation: { received: 95 } });
  });

  test("that does not become smaller with the window cuts once, not down to the narrowest", async () => {
    const source = await harvests.source(
      withoutTotal(spread(95), () => ({ body: { about: 100_000 } })),
      untold({ hint: { path: "$.about" } }),
    );
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({
      status: "COMPLETE",
      slices: { COMPLETE: 2 },
      reconciliation: { received: 95, repeated: 0 },
    });
  });

  test("needs one place", async () => {
    const problems = async (hint: object) => {
      const definition = definitionOf("hinted", untold({ hint }));
      const { body } = await harvests.api.post("/api/v1/harvest/registry/sources:validate", definition);
      return JSON.stringify(body);
    };
    expect(await problems({ header: "x-total", path: "$.total" })).toContain("either in a `header` or at a `path`");
    expect(await problems({})).toContain("either in a `header` or at a `path`");
    expect(await problems({ path: "$.[" })).toContain("window.hint.path");
  });
});

describe("a first page", () => {
  test("of a list in the order of time cuts the slice by its span", async () => {
    const source = await harvests.source(withoutTotal(spread(96)), untold({ monotone: true }));
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 96, repeated: 0 } });
    const [whole] = await seen(ended.planId);
    // Ten of 96 records are in the first 2.25 hours: nine intervals.
    expect(whole).toMatchObject({ status: "SPLIT", estimated: 107, basis: "SAMPLE" });
    expect((await complete(ended.planId)).every(({ received }) => received <= 25)).toBe(true);
  });

  test("of a list without an order, or that is the only one, cuts nothing", async () => {
    for (const [count, window] of [
      [96, {}],
      [9, { monotone: true, sliceRecords: 5 }],
    ] as const) {
      const source = await harvests.source(withoutTotal(spread(count)), untold(window));
      const ended = await harvests.harvest(source);
      expect(ended).toMatchObject({ status: "COMPLETE", slices: { COMPLETE: 1 }, reconciliation: { received: count } });
    }
  });
});

describe("earlier windows", () => {
  const dryRun = async (source: string, body: object) =>
    (await harvests.api.post<Record<string, unknown>>("/api/v1/harvest/plans?dryRun=true", { source, ...body })).body;
  const second = { window: { from: "2026-08-02", to: "2026-08-03" } };

  test("make slices narrower where nothing else tells their size, and the plan says so", async () => {
    const source = await harvests.source(withoutTotal([...spread(96), ...spread(48, "2026-08-02")]), untold());
    expect(await harvests.harvest(source)).toMatchObject({ slices: { COMPLETE: 1 }, estimate: null });
    const draft = await dryRun(source, second);
    expect(draft).toMatchObject({
      slices: 4,
      estimate: { records: 96, basis: "HISTORY" },
      windows: [{ estimate: { records: 24, basis: "HISTORY" }, division: null }, {}, {}, {}],
    });
    const { planId } = await plan(harvests.api, { source, ...second });
    const ended = await endOf(harvests.api, planId);
    expect(ended).toMatchObject({
      status: "COMPLETE",
      slices: { COMPLETE: 4 },
      estimate: { records: 96, basis: "HISTORY" },
      reconciliation: { expected: null, received: 48, gaps: 0 },
    });
    expect((await complete(planId)).map(({ hours, estimated, basis }) => [hours, estimated, basis])).toEqual(
      [1, 2, 3, 4].map(() => [6, 24, "HISTORY"]),
    );
  });

  test("only inform where the first answer will tell the size", async () => {
    const source = await harvests.source(withoutTotal(spread(96)), untold({ monotone: true }));
    await harvests.harvest(source);
    const draft = await dryRun(source, second);
    expect(draft).toMatchObject({
      slices: 1,
      limits: { cap: null, slice: 25 },
      windows: [{ estimate: { records: 96, basis: "HISTORY" }, division: { by: "TIME", parts: 4 } }],
    });
  });

  test("of another selection, and windows that are not complete, count for nothing", async () => {
    const source = await harvests.source(() => ({ status: 400 }), {
      ...untold(),
      params: [{ name: "topic" }],
    });
    expect(await harvests.harvest(source)).toMatchObject({ status: "FAILED" });
    expect(await dryRun(source, second)).toMatchObject({ slices: 1, estimate: null });
    harvests.server.on(source, withoutTotal(spread(96)));
    expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
    expect(await dryRun(source, { ...second, params: { topic: "x" } })).toMatchObject({ slices: 1, estimate: null });
    expect(await dryRun(source, second)).toMatchObject({ slices: 4 });
  });
});
