/** What cannot be stored is kept beside, with its fragment and the expression that failed; the rest of its page is stored. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { type Asked, itemsOf, type Said, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

function quarantineOf(source: string) {
  return database.query<Record<string, unknown>>(
    `select q.item_key as key, q.reason_code as code, q.expression, q.fragment
     from harvest.quarantine q join harvest.reg_prov_endpoint_def e using (endpoint_id)
     where e.provenance_code = $1 order by quarantine_id`,
    [source],
  );
}

test("records without an id, with an illegal value or with an unreadable time are quarantined, and the others stored", async () => {
  const good = itemsOf(3).map((item) => ({ ...item, kind: "book" }));
  const [first, second, third] = good;
  const items = [
    first,
    { updated: "2026-08-01", note: "nameless" },
    { ...second, id: "bad-kind", kind: "brick" },
    second,
    { ...third, id: "bad-time", updated: "the day before yesterday" },
    third,
  ];
  const outputFields = [{ name: "kind", path: "$.kind", enum: ["book", "journal"] }];
  const source = await harvests.source(() => ({ body: { total: 6, items } }), { outputFields });
  const ended = await harvests.harvest(source);
  expect(ended).toMatchObject({
    status: "COMPLETE",
    reconciliation: { expected: 6, received: 3, inserted: 3, quarantined: 3, gaps: 0 },
  });
  expect(await harvests.keys(source)).toEqual(good.map(({ id }) => id));
  expect(await quarantineOf(source)).toEqual([
    { key: null, code: "MISSING_ID", expression: "$.id", fragment: expect.stringContaining("nameless") },
    { key: "bad-kind", code: "ILLEGAL_VALUE", expression: "$.kind", fragment: expect.stringContaining("brick") },
    { key: "bad-time", code: "BAD_TIME", expression: "$.updated", fragment: expect.stringContaining("yesterday") },
  ]);
  const read = async (query: string) =>
    (await harvests.api.get(`/api/v1/harvest/quarantine${query.replace("?", `?source=${source}&`)}`)).body;
  const groups = [
    { endpoint: "items", code: "BAD_TIME", expression: "$.updated", records: 1 },
    { endpoint: "items", code: "ILLEGAL_VALUE", expression: "$.kind", records: 1 },
    { endpoint: "items", code: "MISSING_ID", expression: "$.id", records: 1 },
  ];
  expect(await read("/groups?")).toMatchObject({ items: groups });
  expect(await read("?code=BAD_TIME&expression=%24.updated")).toMatchObject({
    items: [{ key: "bad-time" }],
    next: null,
  });
  expect(await read("?code=BAD_TIME&expression=")).toMatchObject({ items: [] });
  // What has come since is in no group, and each id counts once.
  harvests.server.on(source, () => ({ body: { total: 2, items: [{ ...second, id: "bad-kind" }, items[0]] } }));
  await harvests.harvest(source);
  await database.query(
    `insert into harvest.quarantine (endpoint_id, plan_month, slice_id, generation, batch_no, item_key, reason_code, reason, expression, fragment)
     select endpoint_id, plan_month, slice_id, generation, batch_no, item_key, reason_code, 'the newest', expression, fragment
     from harvest.quarantine where item_key = 'bad-time'`,
  );
  expect(await read("/groups?")).toMatchObject({ items: [{ ...groups[0], reason: "the newest" }, groups[2]] });
  expect(await read("?open=true&code=ILLEGAL_VALUE")).toMatchObject({ items: [], next: null });
  expect(await read("?code=ILLEGAL_VALUE")).toMatchObject({ items: [{ key: "bad-kind", resolved: true }] });
});

test("an id that is listed but not answered is asked for once more, alone, and again with the next explicit window", async () => {
  const items = itemsOf(5);
  const ids = items.map(({ id }) => id);
  const missing = ids[2] ?? "";
  const script = ({ path, body }: Asked): Said => {
    if (path === "/items") return { body: { total: 5, items: ids } };
    const asked = (new URLSearchParams(body).get("ids") ?? "").split(",");
    return { body: { items: items.filter(({ id }) => asked.includes(id) && id !== missing) } };
  };
  const detail = {
    role: "DETAIL",
    method: "POST",
    path: "/details",
    http: { form: { ids: '${ids.join(",")}' } },
    response: { itemsPath: "$.items", idPath: "$.id", updatedAtPath: "$.updated" },
    rateLimit: { keys: ["details"], refillRatePerSec: 5_000, providerRatePerSec: 5_000, burstCapacity: 100 },
  };
  const list = { enumerator: "TwoPhase", detail: "details", response: { idPath: "$", updatedAtPath: undefined } };
  const source = await harvests.source(script, {});
  await harvests.applyEndpoints(source, list, { details: detail });
  const asked = () =>
    harvests.server
      .asked(source)
      .filter(({ path }) => path === "/details")
      .map(({ body }) => new URLSearchParams(body).get("ids"));

  const ended = await harvests.harvest(source);
  expect(ended).toMatchObject({
    status: "COMPLETE",
    reconciliation: { expected: 5, received: 4, inserted: 4, gaps: 0 },
  });
  expect(asked()).toEqual([ids.join(","), missing]);
  expect(await quarantineOf(source)).toEqual([
    { key: missing, code: "MISSING_ID", expression: null, fragment: JSON.stringify(missing) },
  ]);

  // A window that is planned explicitly is asked for whole.
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE", reconciliation: { unchanged: 4 } });
  expect(asked().slice(2)).toEqual([ids.join(","), missing]);
});
