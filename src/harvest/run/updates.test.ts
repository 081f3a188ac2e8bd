/** Updates: known records are asked for again when they are stale, were read by another expression, or are named; a check that changes nothing writes nothing. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { endOf, type PlanReply, plan } from "../harvest.fixture.ts";
import { type Asked, correct, itemsOf, type Said, type TestItem, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

const idsIn = ({ query }: Asked) => (query.get("ids") ?? "").split(",");
const detailOf = (source: string, more: object = {}) => ({
  byid: {
    role: "DETAIL",
    path: "/byid",
    http: { query: { ids: '${ids.join(",")}' } },
    response: { itemsPath: "$.items", idPath: "$.id", updatedAtPath: "$.updated", ...more },
    batching: { idBatchSize: 10 },
    rateLimit: { keys: [source], refillRatePerSec: 5_000, providerRatePerSec: 5_000, burstCapacity: 100 },
    retry: { baseMs: 1, capMs: 5, maxAttempts: 2 },
  },
});

let sources = 0;

/** A source of one day that was harvested and is stale, whose details answer what `answer` says. */
async function harvested(
  update: object,
  answer: (item: TestItem) => object | undefined = (item) => item,
  change: object = {},
) {
  sources += 1;
  const source = `updated-${sources}`;
  const items = itemsOf(25);
  const byId = new Map(items.map((item) => [item.id, item]));
  const state = { answer, refuses: (_ids: readonly string[]) => false };
  harvests.server.on(source, (request): Said | Promise<Said> => {
    if (request.path !== "/byid") return correct(items)(request);
    const ids = idsIn(request);
    if (state.refuses(ids)) return { status: 400, body: {} };
    const found = ids.flatMap((id) => state.answer(byId.get(id) ?? { id, updated: "2026-08-09T00:00:00.000Z" }) ?? []);
    return { body: { items: found } };
  });
  const apply = (more: object = {}) =>
    harvests.applyEndpoints(source, { detail: "byid", update, ...change, ...more }, detailOf(source));
  await apply();
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE", reconciliation: { inserted: 25 } });
  await age(source);
  return { source, items, state, apply };
}

/** Lets 40 days pass for what was read so far. */
async function age(source: string): Promise<void> {
  await database.query(
    "update harvest.ing_plan_slice set ended_at = ended_at - interval '40 days' where provenance_code = $1",
    [source],
  );
  await database.query(
    "update harvest.ing_plan set planned_at = planned_at - interval '40 days' where provenance_code = $1",
    [source],
  );
}

const start = async (source: string, body: object = {}) =>
  (await plan(harvests.api, { source, operation: "UPDATE", ...body })).planId;
const update = async (source: string, body: object = {}): Promise<PlanReply> =>
  endOf(harvests.api, await start(source, body));
const refusal = async (source: string) =>
  (await harvests.api.post<{ code: string }>("/api/v1/harvest/plans", { source, operation: "UPDATE" })).body.code;
const detailsAsked = (source: string) => harvests.server.asked(source).filter(({ path }) => path === "/byid");
/** The places of rows and their transactions: they change with every write to a row, whatever it writes. */
const rowsOf = (source: string) =>
  database.query<{ place: string; version: number; text: string | null }>(
    `select r.ctid::text || ' ' || r.xmin::text as place, r.version, r.data ->> 'text' as text from harvest.record r
     join harvest.reg_prov_endpoint_def e using (endpoint_id) where e.provenance_code = $1 order by r.item_key`,
    [source],
  );
const cursorsOf = async (source: string) =>
  (
    await harvests.api.get<{ items: { key: string; value: string }[] }>(
      `/api/v1/harvest/cursors?source=${source}&operation=UPDATE`,
    )
  ).body.items;

const STALE = { staleAfter: "P30D", sliceRecords: 10 };

describe("records that nothing has checked for a while", () => {
  test("are asked for in batches, and a check that changes nothing writes to no record", async () => {
    const { source, items } = await harvested(STALE);
    const before = await rowsOf(source);
    const planId = await start(source);
    const ended = await endOf(harvests.api, planId);
    expect(ended).toMatchObject({
      status: "COMPLETE",
      priority: 200,
      window: null,
      slices: { COMPLETE: 3 },
      reconciliation: { expected: 25, received: 25, unchanged: 25, updated: 0, missing: 0 },
    });
    expect(await rowsOf(source)).toEqual(before);
    const [written] = await database.query<{ versions: number; landings: number }>(
      `select (select count(*)::int from harvest.record_version v join harvest.reg_prov_endpoint_def e using (endpoint_id)
               where e.provenance_code = $1) as versions,
              (select count(*)::int from harvest.landing l where l.plan_id = $2) as landings`,
      [source, planId],
    );
    expect(written).toEqual({ versions: 0, landings: 0 });
    const asked = detailsAsked(source).flatMap(idsIn);
    expect(asked.toSorted()).toEqual(items.map(({ id }) => id));
    expect(
      detailsAsked(source)
        .map((request) => idsIn(request).length)
        .toSorted((one, other) => other - one),
    ).toEqual([10, 10, 5]);
  });

  test("are not asked for again while they are fresh, and the cursor says since when all are", async () => {
    const { source } = await harvested(STALE);
    const ended = await update(source);
    expect(await refusal(source)).toBe("HARVEST_NOTHING_TO_PLAN");
    expect(await cursorsOf(source)).toMatchObject([
      { key: "refresh_checked_at", scope: "CUSTOM", namespace: "items", value: ended["plannedAt"] },
    ]);
    await age(source);
    expect(await update(source)).toMatchObject({ status: "COMPLETE", reconciliation: { unchanged: 25 } });
  });

  test("are taken in turns where one plan cannot cover all of them", async () => {
    const { source, items } = await harvested({ ...STALE, recordsMax: 10 });
    for (const count of [10, 10, 5]) {
      const before = detailsAsked(source).length;
      expect(await update(source)).toMatchObject({ reconciliation: { unchanged: count } });
      expect(detailsAsked(source).slice(before).flatMap(idsIn)).toHaveLength(count);
    }
    expect(detailsAsked(source).flatMap(idsIn)).toEqual(items.map(({ id }) => id));
    expect(await cursorsOf(source)).toHaveLength(1);
  });

  test("leave a gap where they cannot be asked for: the cursor stays before it, and the next plan asks for these only", async () => {
    const { source, items, state } = await harvested(STALE);
    const bad = items[12]?.id ?? "";
    state.refuses = (ids) => ids.includes(bad);
    expect(await update(source)).toMatchObject({ status: "FAILED", slices: { COMPLETE: 2, FAILED: 1 } });
    expect(await cursorsOf(source)).toEqual([]);
    state.refuses = () => false;
    expect(await update(source)).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 10, unchanged: 10 } });
    expect(await cursorsOf(source)).toHaveLength(1);
  });

  test("are kept once as checked, however often a range of them fails", async () => {
    const { source, items, state } = await harvested(STALE);
    state.refuses = (ids) => ids.includes(items[12]?.id ?? "");
    for (let round = 0; round < 3; round += 1) {
      expect(await update(source)).toMatchObject({ status: "FAILED", slices: { COMPLETE: 2, FAILED: 1 } });
      await age(source);
    }
    const checked = () =>
      database.query<{ keys: string }>(
        `select c.keys::text from harvest.checked_keys c join harvest.reg_prov_endpoint_def e using (endpoint_id)
         where e.provenance_code = $1`,
        [source],
      );
    expect(await checked()).toEqual([{ keys: `{(,${items[10]?.id}),[${items[20]?.id},)}` }]);
    expect(await cursorsOf(source)).toEqual([]);
    state.refuses = () => false;
    expect(await update(source)).toMatchObject({ status: "COMPLETE", reconciliation: { unchanged: 25 } });
    expect(await checked()).toEqual([{ keys: "{(,)}" }]);
  });

  test("change where the source has another content, and stay where it does not answer", async () => {
    const { source, items, state } = await harvested(STALE);
    state.answer = (item) => {
      if (item.id === items[3]?.id) return { ...item, text: "corrected" };
      return item.id === items[7]?.id ? undefined : item;
    };
    expect(await update(source)).toMatchObject({
      status: "COMPLETE",
      reconciliation: { expected: 25, updated: 1, unchanged: 23, missing: 1 },
    });
    const rows = await rowsOf(source);
    expect(rows).toHaveLength(25);
    expect(rows[3]).toMatchObject({ version: 2, text: "corrected" });
    expect(rows[7]).toMatchObject({ version: 1 });
    const { body } = await harvests.api.get(`/api/v1/harvest/quarantine?source=${source}`);
    expect(body).toMatchObject({ items: [{ key: items[7]?.id, reason: expect.stringContaining("stays as it is") }] });
  });
});

test("an endpoint that answers none of many known records is not believed", async () => {
  const { source, state } = await harvested(STALE);
  state.answer = () => undefined;
  const ended = await update(source);
  expect(ended).toMatchObject({ status: "FAILED", slices: { INCOMPLETE: 2, COMPLETE: 1 } });
  const [slice] = await database.query<{ reason: string }>(
    "select reason from harvest.ing_plan_slice where plan_id = $1 and status_code = 'INCOMPLETE'",
    [ended.planId],
  );
  expect(slice?.reason).toContain("10 of 10 known records were not answered");
  expect(await cursorsOf(source)).toEqual([]);
});

test("records that another expression has read are asked for once, whatever their age", async () => {
  const { source, apply } = await harvested({});
  expect(await update(source)).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 0, received: 0 } });
  expect(await refusal(source)).toBe("HARVEST_NOTHING_TO_PLAN");
  await apply({ response: { requiredPaths: ["$.id"] } });
  expect(await update(source)).toMatchObject({ status: "COMPLETE", reconciliation: { unchanged: 25 } });
  expect(await refusal(source)).toBe("HARVEST_NOTHING_TO_PLAN");
});

test("ids that a plan names are asked for, whether they are known or not", async () => {
  const { source, items, state } = await harvested({});
  state.answer = (item) => ({ ...item, text: "named" });
  const ids = [items[1]?.id ?? "", "unknown", items[1]?.id ?? ""];
  expect(await update(source, { ids })).toMatchObject({ reconciliation: { expected: 2, inserted: 1, updated: 1 } });
  expect(detailsAsked(source).map(idsIn)).toEqual([[items[1]?.id, "unknown"]]);
  const wrong = await harvests.api.post("/api/v1/harvest/plans", { source, operation: "HARVEST", ids });
  expect(wrong).toMatchObject({ status: 400, body: { error: expect.stringContaining("`ids` is for UPDATE") } });
});

test("an update that may only fill what is empty changes nothing else, and stays when a harvest brings the same again", async () => {
  const ignoring = { response: { ignoredPaths: ["$.score"] } };
  const { source, items } = await harvested(
    { ...STALE, fillEmpty: ["$.text"] },
    (item) => ({ ...item, text: "filled", other: "not wanted" }),
    ignoring,
  );
  expect(await update(source)).toMatchObject({ reconciliation: { updated: 25 } });
  const [record] = await database.query<{ data: object }>(
    `select data from harvest.record r join harvest.reg_prov_endpoint_def e using (endpoint_id)
     where e.provenance_code = $1 order by item_key limit 1`,
    [source],
  );
  expect(record?.data).toEqual({ ...items[0], text: "filled" });
  const before = await rowsOf(source);
  for (const item of items) item["score"] = 1;
  expect(await harvests.harvest(source)).toMatchObject({ reconciliation: { unchanged: 25, updated: 0 } });
  await age(source);
  expect(await update(source)).toMatchObject({ reconciliation: { unchanged: 25, updated: 0 } });
  expect(await rowsOf(source)).toEqual(before);
});

test("an endpoint that only knows ids is updated by them, and cannot be harvested", async () => {
  const source = "existing-set";
  harvests.server.on(source, (request) => ({
    body: { items: idsIn(request).map((id) => ({ id, updated: "2026-08-01T00:00:00Z" })) },
  }));
  const { role: _, ...endpoint } = detailOf(source).byid;
  const definition = {
    window: undefined,
    pagination: undefined,
    ...endpoint,
    enumerator: "ExistingSet",
  };
  await harvests.apply(source, definition);
  expect(await update(source, { ids: ["a", "b"] })).toMatchObject({
    status: "COMPLETE",
    reconciliation: { inserted: 2 },
  });
  const { body } = await harvests.api.post<{ code: string }>("/api/v1/harvest/plans", { source });
  expect(body.code).toBe("DEFINITION_INVALID");
});

test("a redirect to the same record, as of a host that has moved, deletes nothing", async () => {
  sources += 1;
  const source = `moved-${sources}`;
  let location = `https://new.example/${source}/byid`;
  harvests.server.on(source, (request): Said | Promise<Said> => {
    if (request.path !== "/byid") return correct(itemsOf(3))(request);
    return { status: 301, headers: { location }, body: {} };
  });
  const { byid } = detailOf(source);
  const classifier = [{ when: "status == 301", action: "DELETED", reason: "it was merged into another" }];
  const alone = { byid: { ...byid, batching: { idBatchSize: 1 }, classifier } };
  await harvests.applyEndpoints(source, { detail: "byid", update: { staleAfter: "P30D" } }, alone);
  await harvests.harvest(source);
  await age(source);
  const before = await rowsOf(source);
  expect(await update(source)).toMatchObject({ status: "FAILED", reconciliation: { deleted: 0 } });
  expect(await rowsOf(source)).toEqual(before);
  location = "/another";
  expect(await update(source)).toMatchObject({ status: "COMPLETE", reconciliation: { deleted: 3 } });
});

describe("records that are quarantined", () => {
  /** Of 25 records, those with these places have no text, which the definition requires. */
  async function quarantining(places: readonly number[]) {
    sources += 1;
    const source = `quarantined-${sources}`;
    const items: TestItem[] = itemsOf(25).map((item, place) =>
      places.includes(place) ? item : { ...item, text: "there" },
    );
    const byId = new Map<string, TestItem>(items.map((item) => [item.id, item]));
    const state = { answer: (item: TestItem): object | undefined => item };
    harvests.server.on(source, (request): Said | Promise<Said> => {
      if (request.path !== "/byid") return correct(items)(request);
      return {
        body: { items: idsIn(request).flatMap((id) => state.answer(byId.get(id) ?? { id, updated: "" }) ?? []) },
      };
    });
    const apply = (required: readonly string[]) =>
      harvests.applyEndpoints(
        source,
        { detail: "byid", response: { requiredPaths: required } },
        detailOf(source, { requiredPaths: required }),
      );
    await apply(["$.text"]);
    expect(await harvests.harvest(source)).toMatchObject({
      status: "COMPLETE",
      reconciliation: { inserted: 25 - places.length, quarantined: places.length },
    });
    return { source, items, state, apply, bad: places.map((place) => items[place]?.id ?? "") };
  }
  const quarantineOf = async (source: string) =>
    (
      await harvests.api.get<{ items: { key: string; resolved: boolean; reason: string }[] }>(
        `/api/v1/harvest/quarantine?source=${source}`,
      )
    ).body.items;
  /** The places of rows and their transactions. */
  const written = (source: string) =>
    database.query<object>(
      `select q.ctid::text || ' ' || q.xmin::text as place from harvest.quarantine q
       join harvest.reg_prov_endpoint_def e using (endpoint_id) where e.provenance_code = $1 order by q.quarantine_id`,
      [source],
    );

  test("are asked for on demand, and are resolved when they come", async () => {
    const { source, bad, state } = await quarantining([3, 7]);
    state.answer = (item) => ({ ...item, text: "now there" });
    const ended = await update(source, { quarantined: true });
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 2, inserted: 2, quarantined: 0 } });
    expect(detailsAsked(source).flatMap(idsIn)).toEqual(bad);
    expect(await quarantineOf(source)).toMatchObject(bad.toReversed().map((key) => ({ key, resolved: true })));
    expect(
      await harvests.api.post("/api/v1/harvest/plans", { source, operation: "UPDATE", quarantined: true }),
    ).toMatchObject({
      status: 409,
      body: { code: "HARVEST_NOTHING_TO_PLAN", error: expect.stringContaining("No record is quarantined") as string },
    });
  });

  test("are resolved too where what comes is the record that is there", async () => {
    const { source, items } = await quarantining([]);
    const before = await rowsOf(source);
    const [id, updated] = [items[3]?.id ?? "", items[3]?.updated ?? ""];
    items[3] = { id, updated };
    expect(await harvests.harvest(source)).toMatchObject({ reconciliation: { unchanged: 24, quarantined: 1 } });
    const ended = await update(source, { quarantined: true });
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 1, unchanged: 1 } });
    expect(await quarantineOf(source)).toMatchObject([{ key: id, resolved: true }]);
    expect(await rowsOf(source)).toEqual(before);
  });

  test("and still cannot be stored end the plan COMPLETE, and nothing is written for what is known", async () => {
    const { source, bad } = await quarantining([3, 7]);
    const before = await written(source);
    const ended = await update(source, { quarantined: true });
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 2, received: 0, quarantined: 2 } });
    expect(await written(source)).toEqual(before);
    expect(await quarantineOf(source)).toMatchObject(bad.toReversed().map((key) => ({ key, resolved: false })));
  });

  test("are resolved too where the source has another spelling of the id that was asked for", async () => {
    const { source, bad, state } = await quarantining([3]);
    state.answer = (item) => ({ ...item, id: `doi:${item.id}`, text: "there" });
    await update(source, { quarantined: true });
    expect(await quarantineOf(source)).toMatchObject([{ key: bad[0], resolved: true }]);
  });

  test("and are answered without an id are quarantined once more, and not again", async () => {
    const { source, bad, state } = await quarantining([3]);
    state.answer = () => ({ text: "whose is this?" });
    for (let round = 0; round < 3; round += 1) await update(source, { quarantined: true });
    expect(await quarantineOf(source)).toMatchObject([
      { key: bad[0], resolved: false },
      { key: bad[0], resolved: false },
    ]);
  });

  test("and that the source does not answer any more do not end the update of others", async () => {
    const places = Array.from({ length: 12 }, (_, place) => place);
    const { source, bad, state, apply } = await quarantining(places);
    state.answer = (item) => (bad.includes(item.id) ? undefined : item);
    await apply(["$.id"]);
    expect(await update(source)).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 25, missing: 12 } });
  });

  test("are asked for by the next update after the definition has changed, once, beside what is due", async () => {
    const { source, bad, apply } = await quarantining([3, 7]);
    expect(await update(source)).toMatchObject({ reconciliation: { expected: 0 } });
    expect(await refusal(source)).toBe("HARVEST_NOTHING_TO_PLAN");
    await apply(["$.id"]);
    const { body } = await harvests.api.post<{ notes: string[] }>("/api/v1/harvest/plans?dryRun=true", {
      source,
      operation: "UPDATE",
    });
    expect(body.notes[0]).toBe("2 records quarantined by another definition are asked for.");
    expect(await update(source)).toMatchObject({
      status: "COMPLETE",
      slices: { COMPLETE: 2 },
      reconciliation: { expected: 25, inserted: 2, unchanged: 23, quarantined: 0 },
    });
    expect(detailsAsked(source).flatMap(idsIn).slice(0, 25)).toEqual(expect.arrayContaining(bad));
    expect(await refusal(source)).toBe("HARVEST_NOTHING_TO_PLAN");
  });

  test("and that the new definition refuses too are asked for once by it", async () => {
    const { source, apply } = await quarantining([3, 7]);
    await update(source);
    await apply(["$.text", "$.id"]);
    expect(await update(source)).toMatchObject({
      status: "COMPLETE",
      reconciliation: { expected: 25, quarantined: 2 },
    });
    expect(await quarantineOf(source)).toHaveLength(4);
    expect(await refusal(source)).toBe("HARVEST_NOTHING_TO_PLAN");
  });

  test("that a harvest has brought since are not asked for", async () => {
    const { source, items, apply, bad } = await quarantining([3, 7]);
    await apply(["$.id"]);
    await harvests.harvest(source);
    expect(await harvests.keys(source)).toEqual(items.map(({ id }) => id));
    expect(await quarantineOf(source)).toMatchObject(bad.toReversed().map((key) => ({ key, resolved: true })));
    // Those that have not changed were read by the earlier definition, so they are due.
    expect(await update(source)).toMatchObject({ reconciliation: { expected: 23, unchanged: 23 } });
    expect(detailsAsked(source).flatMap(idsIn)).not.toEqual(expect.arrayContaining(bad.slice(0, 1)));
  });

  test("are left alone for a while where the source did not answer them, unless somebody asks", async () => {
    const { source, state, apply } = await quarantining([3]);
    state.answer = () => undefined;
    expect(await update(source, { quarantined: true })).toMatchObject({ reconciliation: { expected: 1, missing: 1 } });
    await apply(["$.id"]);
    state.answer = (item) => item;
    expect(await update(source)).toMatchObject({ reconciliation: { expected: 24, inserted: 0 } });
    expect(await update(source, { quarantined: true })).toMatchObject({ reconciliation: { expected: 1, inserted: 1 } });
  });

  test.each([
    [{ operation: "HARVEST", quarantined: true }, "`quarantined` is for UPDATE, not for HARVEST"],
    [{ operation: "UPDATE", quarantined: true, ids: ["a"] }, "Give either `ids` or `quarantined`, not both"],
  ])("a plan of %j is refused", async (body, error) => {
    const { source } = await quarantining([]);
    expect(await harvests.api.post("/api/v1/harvest/plans", { source, ...body })).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining(error) as string },
    });
  });
});
