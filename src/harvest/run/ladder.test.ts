/** Days over the cap of a source: divided by the ladder, complete only when the parts add up, and never passed in silence. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startMillrace, type TestMillrace } from "../../../test/millrace.ts";
import { until } from "../../../test/until.ts";
import { startPubmed } from "../../simulators/index.ts";
import { applySource, endOf, type PlanReply, plan, windowOf } from "../harvest.fixture.ts";
import {
  type Asked,
  applyScripted,
  definitionOf,
  type Script,
  type ScriptedServer,
  startScripted,
} from "./scripted.fixture.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const DAY = "2026-08-02";
const days = ["2026-08-01", DAY, "2026-08-03"];

const database = useDatabase();
let server: ScriptedServer;
let millrace: TestMillrace;
let directory: string;
let simulator: Awaited<ReturnType<typeof startPubmed>>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "millrace-ladder-"));
  server = await startScripted();
  // Most of its records entered late, so their date of entry is that of their publication.
  simulator = await startPubmed({
    days: [DAY],
    recordsPerDay: 2_600,
    publishedDays: 3_000,
    ceiling: 399,
    unlimited: true,
  });
  for (const day of days) if (day !== DAY) simulator.add({ updated: `${day}T10:00:00Z` });
  millrace = await startMillrace(database, {
    env: {
      MILLRACE_ROLES: "api,worker",
      MILLRACE_HARVEST_ALLOW_PRIVATE: [new URL(simulator.origin).host, server.host].join(","),
      MILLRACE_LAKE_DIR: join(directory, "lake"),
    },
  });
});
afterAll(async () => {
  await millrace.app.stop();
  await Promise.all([simulator.close(), server.close()]);
  await rm(directory, { recursive: true });
});

async function watermarkOf(source: string): Promise<string | undefined> {
  const rows = await database.query<{ value: string }>(
    "select cursor_value as value from harvest.ing_cursor where provenance_code = $1",
    [source],
  );
  return rows[0]?.value;
}

interface Definition {
  endpoints: { esearch: { slicing: { ladder: { until: string }[] } } };
}

interface Seen {
  status: string;
  expected: number;
  received: number;
  isPart: boolean;
  part: object | null;
  reason: string | null;
}
const slicesOf = (planId: string) =>
  database.query<Seen>(
    `select status_code as status, expected::int, received::int, root_slice_id is not null as "isPart", part, reason
     from harvest.ing_plan_slice where plan_id = $1 order by slice_id`,
    [planId],
  );

describe("PubMed's cap", () => {
  const cap = { window: { recordsMax: 399 }, pagination: { pageSize: 300 } };
  const all = { from: "2026-08-01", to: "2026-08-04" };

  test("a day beyond it is divided by the date of entry, and is complete when the parts have all of it", async () => {
    const { api } = millrace;
    const source = await applySource(api, "pubmed", simulator, cap);
    const { planId } = await plan(api, { source, window: all });
    const ended = await endOf(api, planId);
    expect(ended).toMatchObject({
      status: "COMPLETE",
      slices: { COMPLETE: 3 },
      reconciliation: { expected: 2_602, received: 2_602, inserted: 2_602, repeated: 0, gaps: 0 },
    });
    const parts = (await slicesOf(planId)).filter(({ isPart }) => isPart);
    expect(parts.length).toBeGreaterThan(6);
    expect(parts.every(({ status, received }) => status === "COMPLETE" && received <= 399)).toBe(true);
    expect(parts.reduce((sum, { received }) => sum + received, 0)).toBe(2_600);
    expect(await watermarkOf(source)).toBe("2026-08-04T00:00:00.000Z");
    const stored = await database.query<{ key: string }>(
      `select item_key as key from harvest.record r join harvest.reg_prov_endpoint_def e using (endpoint_id)
       where e.provenance_code = $1 order by item_key collate "C"`,
      [source],
    );
    const known = simulator.records().map(({ id }) => id);
    expect(stored.map(({ key }) => key)).toEqual(known.sort());
    // The table has what the parts brought, once they all had.
    await until(async () => {
      const { body } = await api.get<{ landings: { opTime: string; rows: number }[] }>(
        `/api/v1/harvest/plans/${planId}`,
      );
      return body.landings.find(({ opTime }) => opTime === "20260802")?.rows === 2_600;
    }, "the day in the lake");
  });

  test("a day that an older definition left INCOMPLETE is finished by the next harvest of what is missing", async () => {
    const { api } = millrace;
    const source = await applySource(api, "pubmed", simulator, cap);
    const path = `/api/v1/harvest/registry/sources/${source}`;
    const { body } = await api.get<{ definition: Definition }>(path);
    const applyUntil = async (day: string) => {
      const definition = structuredClone(body.definition);
      const [edat] = definition.endpoints.esearch.slicing.ladder;
      if (edat) edat.until = day;
      const answer = await api.put(`${path}?baseUrl=${encodeURIComponent(simulator.baseUrl)}`, definition);
      expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
    };
    await applyUntil("1999-12-31");
    const first = await endOf(api, (await plan(api, { source, window: all })).planId);
    expect(first).toMatchObject({ status: "FAILED", slices: { COMPLETE: 2, INCOMPLETE: 1 } });
    expect(await watermarkOf(source)).toBe("2026-08-02T00:00:00.000Z");
    await applyUntil("2199-12-31");
    const next = await endOf(api, (await plan(api, { source })).planId);
    expect(next).toMatchObject({ status: "COMPLETE", reconciliation: { received: 2_600, gaps: 0 } });
    expect(Date.parse((await watermarkOf(source)) ?? "")).toBeGreaterThanOrEqual(Date.parse("2026-08-04"));
  });

  test.runIf(LONG)(
    "266,421 records of one day come exactly",
    async () => {
      const many = await startPubmed({
        days: [DAY],
        recordsPerDay: 266_421,
        publishedDays: 18_000,
        writesLate: true,
        unlimited: true,
      });
      onTestFinished(() => many.close());
      const { app, api } = await startMillrace(database, {
        env: { MILLRACE_ROLES: "api,worker", MILLRACE_HARVEST_ALLOW_PRIVATE: new URL(many.origin).host },
      });
      onTestFinished(() => app.stop());
      const source = await applySource(api, "pubmed", many, { pagination: { pageSize: 9_999 } });
      const ended = await endOf(api, (await plan(api, { source, window: windowOf(many) })).planId, 900_000);
      expect(ended).toMatchObject({
        status: "COMPLETE",
        slices: { COMPLETE: 1 },
        reconciliation: { expected: 266_421, received: 266_421, inserted: 266_421, gaps: 0 },
      });
    },
    1_000_000,
  );
});

interface Item {
  id: string;
  updated: string;
  kinds: readonly string[];
}

/** A correct source of a day, with at most 20 records for one query, and `kind` as a filter. */
function capped(items: readonly Item[]): Script {
  return ({ query }: Asked) => {
    const kind = query.get("kind");
    const found = items.filter(({ kinds }) => {
      if (kind === null) return true;
      return kind.startsWith("!")
        ? !kind
            .slice(1)
            .split(",")
            .some((one) => kinds.includes(one))
        : kinds.includes(kind);
    });
    const offset = Number(query.get("offset") ?? 0);
    const page = found.slice(offset, Math.min(20, offset + Number(query.get("size") ?? 10)));
    return { body: { total: found.length, items: page } };
  };
}

const kindsOf = (counts: Record<string, number>): Item[] =>
  Object.entries(counts).flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, index) => ({
      id: `${kind}-${index}`,
      updated: "2026-08-01T00:00:00Z",
      kinds: kind.split("+"),
    })),
  );

let sources = 0;
async function harvested(script: Script, ladder: readonly object[]): Promise<PlanReply & { source: string }> {
  sources += 1;
  const source = `capped-${sources}`;
  server.on(source, script);
  const { endpoints, ...rest } = definitionOf(source, {
    window: { recordsMax: 20 },
    slicing: { ladder },
    http: {
      query: {
        from: "${window.from}",
        to: "${window.to}",
        offset: "${page.offset}",
        size: "${page.size}",
        kind: "${parts.kind}",
      },
    },
  }) as { endpoints: Record<string, object>; source: string };
  await applyScripted({ api: millrace.api, server }, { ...rest, endpoints } as { source: string });
  const { planId } = await plan(millrace.api, { source, window: { from: "2026-08-01", to: "2026-08-02" } });
  return { ...(await endOf(millrace.api, planId)), source };
}

const KINDS = { name: "kind", type: "VALUES", values: ["book", "article"], fragment: "${range.value}" };
const REST = { rest: '!${range.values.join(",")}' };

test("a slice is divided by values, and by what has none of them", async () => {
  const ended = await harvested(capped(kindsOf({ book: 15, article: 18, other: 7 })), [{ ...KINDS, ...REST }]);
  expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 40, received: 40, gaps: 0 } });
  const parts = (await slicesOf(ended.planId)).filter(({ isPart }) => isPart);
  expect(parts.map(({ part, received }) => [part, received])).toEqual([
    [{ kind: { value: "book" } }, 15],
    [{ kind: { value: "article" } }, 18],
    [{ kind: { rest: "" } }, 7],
  ]);
});

test("a dry run shows what divides a window over the cap, and after a harvest into what and how large", async () => {
  const items = kindsOf({ book: 15, article: 18, other: 7 });
  const { source } = await harvested(capped(items.slice(0, 20)), [{ ...KINDS, ...REST }]);
  const dryRun = async (from: string, to: string) => {
    const { body } = await millrace.api.post<Record<string, unknown>>("/api/v1/harvest/plans?dryRun=true", {
      source,
      window: { from, to },
    });
    return body;
  };
  const ladder = [
    {
      name: "kind",
      type: "VALUES",
      kind: "list",
      count: 3,
      parts: ["kind book", "kind article", "kind of no listed value"],
    },
  ];
  expect(await dryRun("2026-08-01", "2026-08-02")).toMatchObject({
    limits: { cap: 20, slice: null },
    ladder,
    windows: [{ estimate: { records: 20, basis: "HISTORY" }, division: null }],
  });
  server.on(source, capped(items));
  const { planId } = await plan(millrace.api, { source, window: { from: "2026-08-01", to: "2026-08-02" } });
  expect(await endOf(millrace.api, planId)).toMatchObject({
    status: "COMPLETE",
    divided: [{ status: "COMPLETE", expected: 40, by: ["kind"], parts: { COMPLETE: 3 } }],
  });
  const { estimate, windows } = (await dryRun("2026-08-01", "2026-08-02")) as { estimate: object; windows: object[] };
  expect(estimate).toEqual({ records: 40, basis: "HISTORY" });
  expect(windows).toMatchObject([
    {
      division: {
        by: "kind",
        parts: 3,
        isKnown: true,
        first: [
          { name: "kind book", records: 15 },
          { name: "kind article", records: 18 },
          { name: "kind of no listed value", records: 7 },
        ],
      },
    },
  ]);
  // Of a day that was never harvested, only the step is known.
  expect(await dryRun("2026-08-02", "2026-08-03")).toMatchObject({
    windows: [
      {
        estimate: { records: 30 },
        division: { by: "kind", parts: 3, isKnown: false, first: [{ name: "kind book", records: null }, {}, {}] },
      },
    ],
  });
});

describe("a sum that does not verify", () => {
  test("is INCOMPLETE with the reason before anything is fetched, and the watermark does not pass", async () => {
    const ended = await harvested(capped(kindsOf({ book: 15, article: 18, other: 7 })), [KINDS]);
    expect(ended).toMatchObject({
      status: "FAILED",
      slices: { INCOMPLETE: 1 },
      reconciliation: { received: 0, gaps: 1 },
      gapWindows: [{ reason: expect.stringContaining("the parts by kind have 33 of the 40 records of the window") }],
    });
    expect(await watermarkOf(ended.source)).toBeUndefined();
  });

  test("is INCOMPLETE if records come in two parts, although the counts agree", async () => {
    // Eight are of both kinds and eight of none, so the sum is that of the whole.
    const items = kindsOf({ book: 8, article: 8, "book+article": 8, other: 8 });
    const ended = await harvested(capped(items), [KINDS]);
    expect(ended).toMatchObject({
      status: "FAILED",
      slices: { INCOMPLETE: 1 },
      gapWindows: [{ reason: "8 records came in more than one of 2 parts, so their dimension does not divide them" }],
    });
    expect(await watermarkOf(ended.source)).toBeUndefined();
  });

  test("is INCOMPLETE if the parts lose records after they were counted", async () => {
    const correct = capped(kindsOf({ book: 15, article: 18 }));
    let counts = 0;
    const ended = await harvested(
      (asked) => {
        const said = correct(asked) as { body: { total: number; items: { id: string }[] } };
        if (asked.query.get("kind") !== "book") return said;
        counts += 1;
        // The first answer counts it; later ones know of one less.
        if (counts === 1) return said;
        return { body: { total: 14, items: said.body.items.filter(({ id }) => id !== "book-14") } };
      },
      [KINDS],
    );
    expect(ended).toMatchObject({
      status: "FAILED",
      gapWindows: [{ reason: "the source announced 33 records, and its 2 parts have 32" }],
    });
    expect(await watermarkOf(ended.source)).toBeUndefined();
  });

  test("is INCOMPLETE if a part is not complete, with the reason of the part", async () => {
    const ended = await harvested(capped(kindsOf({ book: 15, article: 30 })), [KINDS]);
    expect(ended).toMatchObject({
      status: "FAILED",
      slices: { INCOMPLETE: 1 },
      reconciliation: { expected: 45, received: 15, gaps: 1 },
      gapWindows: [
        {
          reason: expect.stringMatching(
            /^1 of 2 parts is not complete. The first: the part kind article has 30 records/,
          ),
        },
      ],
    });
    // It is the whole that can be accepted.
    const [part] = await database.query<{ id: string }>(
      "select slice_id::text as id from harvest.ing_plan_slice where plan_id = $1 and status_code = 'INCOMPLETE' and part is not null",
      [ended.planId],
    );
    const refused = await millrace.api.post(`/api/v1/harvest/plans/${ended.planId}/slices/${part?.id}:accept`, {
      reason: "x",
    });
    expect(refused.body).toMatchObject({ code: "HARVEST_SLICE_IS_PART" });
  });
});

describe("maxPage", () => {
  /** A correct source of two days by hours, which serves three pages of ten. */
  function threePages(items: readonly { id: string; updated: string }[]): Script {
    return ({ query }) => {
      const [from, to] = [Date.parse(query.get("from") ?? ""), Date.parse(query.get("to") ?? "")];
      const found = items.filter(({ updated }) => Date.parse(updated) >= from && Date.parse(updated) < to);
      const offset = Number(query.get("offset") ?? 0);
      if (offset >= 30) return { status: 400, body: { error: "no such page" } };
      return { body: { total: found.length, items: found.slice(offset, offset + 10) } };
    };
  }
  const items = Array.from({ length: 150 }, (_, index) => ({
    id: `item-${String(index).padStart(3, "0")}`,
    // More in some hours than in others, and at most 30 in one.
    updated: new Date(Date.UTC(2026, 7, 1) + ((index * index) % (47 * 3_600)) * 1_000).toISOString(),
  }));

  async function harvestedPages(announcesTotal: boolean) {
    sources += 1;
    const source = `capped-${sources}`;
    server.on(source, threePages(items));
    const window = { granularity: "PT1S", format: "iso", align: "min", minWindow: "PT1M", maxWindow: "P2D" };
    const definition = definitionOf(source, {
      window,
      pagination: { maxPage: 3 },
      response: announcesTotal ? {} : { totalPath: undefined },
    });
    await applyScripted({ api: millrace.api, server }, definition);
    const { planId } = await plan(millrace.api, { source, window: { from: "2026-08-01", to: "2026-08-03" } });
    const ended = await endOf(millrace.api, planId);
    const keys = await database.query<{ key: string }>(
      `select item_key as key from harvest.record r join harvest.reg_prov_endpoint_def e using (endpoint_id)
       where e.provenance_code = $1 order by 1`,
      [source],
    );
    return { ended, keys: keys.map(({ key }) => key), pages: server.asked(source) };
  }

  test("the slice goes on by windows of time before it is passed, and nothing is lost", async () => {
    const { ended, keys, pages } = await harvestedPages(true);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 150, received: 150, repeated: 0 } });
    expect(keys).toEqual(items.map(({ id }) => id));
    expect(pages.every(({ query }) => Number(query.get("offset")) < 30)).toBe(true);
  });

  test("also where the source announces no total", async () => {
    const { ended, keys } = await harvestedPages(false);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 150, gaps: 0 } });
    expect(keys).toEqual(items.map(({ id }) => id));
  });
});
