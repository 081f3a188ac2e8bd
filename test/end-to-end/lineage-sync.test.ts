/** The life of a tenant over HTTP: events wait, a full sync is taken, what waited is replayed; dead letters are tried again. */
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { gravitinoEvent, type Json, schemaFacet } from "../../src/lineage/events.fixture.ts";
import { testLineage } from "../../src/lineage/lineage.fixture.ts";
import { useDatabase } from "../database.ts";
import { makeTenant, postEvent, type TestTenant } from "../lineage-process.ts";
import { useMillrace } from "../millrace.ts";
import { until } from "../until.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const lineage = testLineage(database);
let tenant: TestTenant;
let path: string;
let tenants = 0;

beforeEach(async () => {
  tenants += 1;
  tenant = await makeTenant(millrace.api, tenants, { state: "NEW" });
  path = `/api/v1/lineage/tenants/${tenant.id}`;
});

const table = (name: string, { columns = ["id"], at = "2026-03-02T10:00:00Z" } = {}): Json =>
  gravitinoEvent("create_table", {
    tenantId: tenant.id,
    name: `dw.${name}`,
    eventTime: at,
    facets: schemaFacet(columns),
  });
const post = (event: Json) => postEvent(millrace.url, tenant.keys.GRAVITINO, event);
const baseline = (events: Json | Json[]) => millrace.api.post(`${path}/baseline`, events);
const named = async (kind: string) =>
  Object.keys((await lineage.graph(String(tenant.id))).nodes)
    .filter((name) => name.startsWith(kind))
    .map((name) => name.split("/dw/")[1]);
const statesNow = async () =>
  (
    await database.query<{ state: string; count: number }>(
      "select apply_state as state, count(*)::int from lineage.lineage_events where tenant_id = $1 group by 1 order by 1",
      [tenant.id],
    )
  ).map(({ state, count }) => `${count} ${state}`);

describe("a full sync", () => {
  test("is followed by what waited since its cutover, and by every event from then on", async () => {
    expect(await post(table("early", { at: "2026-02-28T23:00:00Z" }))).toMatchObject({
      status: 202,
      body: { state: "BUFFERED" },
    });
    expect(await baseline(table("orders")), "it has to be begun").toMatchObject({ status: 409 });
    const begun = await millrace.api.post(`${path}:sync-start`, { cutoverTime: "2026-03-01T00:00:00Z" });
    expect(begun).toMatchObject({ status: 200, body: { state: "SYNCING", cutoverTime: "2026-03-01T00:00:00.000Z" } });

    expect(await baseline(table("orders", { columns: ["id", "old"], at: "2026-03-01T00:00:01Z" }))).toMatchObject({
      status: 201,
      body: { state: "APPLIED" },
    });
    const rest = [table("a", { at: "2026-03-01T00:00:02Z" }), table("b", { at: "2026-03-01T00:00:03Z" })];
    expect(await baseline(rest)).toMatchObject({ status: 200, body: { summary: { successful: 2 } } });
    expect(await post(table("later"))).toMatchObject({ status: 202, body: { state: "BUFFERED" } });
    expect(await named("TABLE"), "what is synced is there at once, what waits is not").toEqual(["a", "b", "orders"]);

    const ready = await millrace.api.post(`${path}:ready`);
    expect(ready).toMatchObject({ status: 200, body: { state: "READY", applied: 1, skipped: 1, dead: 0 } });
    expect(await named("TABLE")).toEqual(["a", "b", "later", "orders"]);
    expect(await post(table("next"))).toMatchObject({ status: 201, body: { state: "APPLIED" } });
    expect(await post(table("late", { at: "2026-02-01T00:00:00Z" }))).toMatchObject({
      status: 202,
      body: { state: "SKIPPED" },
    });
    expect(await statesNow()).toEqual(["5 APPLIED", "2 SKIPPED"]);
    expect(await millrace.api.post(`${path}:ready`), "again").toMatchObject({ status: 200, body: { applied: 0 } });
  });

  test("takes away columns that it does not list any more", async () => {
    await millrace.api.post(`${path}:ready`);
    await post(table("orders", { columns: ["id", "amount", "old"] }));
    await millrace.api.post(`${path}:sync-start`, { cutoverTime: "2026-03-03T00:00:00Z" });
    await baseline(table("orders", { columns: ["id", "amount"], at: "2026-03-03T00:00:01Z" }));
    expect(await named("COLUMN")).toEqual(["orders/amount", "orders/id"]);
    await millrace.api.post(`${path}:ready`);
    expect(await named("COLUMN")).toEqual(["orders/amount", "orders/id"]);
  });

  test("loses nothing of what comes while what waited is replayed", async () => {
    const count = 600;
    await Promise.all(Array.from({ length: count }, (_, n) => post(table(`waited${n}`))));
    let sent = 0;
    const over = new AbortController();
    const sending = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (!over.signal.aborted) {
          sent += 1;
          const { status } = await post(table(`sent${sent}`));
          if (status !== 201 && status !== 202) throw new Error(`answered ${status}`);
        }
      }),
    );
    await until(() => sent > 20, "the clients to send");
    const ready = await millrace.api.post<Record<string, number>>(`${path}:ready`);
    const sentUntilReady = sent;
    await until(() => sent > sentUntilReady + 20, "the clients to go on");
    over.abort();
    await sending;
    expect(ready.body).toMatchObject({ state: "READY", dead: 0, skipped: 0 });
    expect(ready.body["applied"]).toBeGreaterThanOrEqual(count);
    expect(await statesNow()).toEqual([`${count + sent} APPLIED`]);
    expect(await named("TABLE")).toHaveLength(count + sent);
  });
});

describe("a dead letter", () => {
  test("is shown with its reason, does no harm to others, and can be replayed once the fault is gone", async () => {
    await millrace.api.post(`${path}:ready`);
    await database.query("alter table lineage.node add constraint fault check (name <> 'poison') not valid");
    const fix = () => database.query("alter table lineage.node drop constraint if exists fault");
    onTestFinished(async () => void (await fix()));
    const batch = ["a", "poison", "b"].map((name) => table(name));
    expect(await millrace.api.post("/api/v1/lineage/batch", batch)).toMatchObject({
      status: 200,
      body: { status: "success" },
    });
    expect(await post(table("poison")), "it is kept").toMatchObject({
      status: 202,
      body: { state: "DEAD", duplicate: true },
    });
    expect(await named("TABLE")).toEqual(["a", "b"]);

    const { body } = await millrace.api.get<{ items: Json[] }>(`/api/v1/lineage/dead-letters?tenant=${tenant.id}`);
    expect(body.items).toMatchObject([{ state: "DEAD", error: expect.stringContaining("fault") as string }]);
    const replay = `${path}/dead-letters/${String(body.items[0]?.["id"])}:replay`;
    expect(await millrace.api.post(replay)).toMatchObject({ status: 200, body: { state: "DEAD" } });
    expect(await millrace.api.post(`${path}/dead-letters:replay`)).toMatchObject({
      body: { applied: 0, dead: 1, remaining: 1 },
    });
    await fix();
    expect(await millrace.api.post(`${path}/dead-letters:replay`)).toMatchObject({
      body: { applied: 1, dead: 0, remaining: 0 },
    });
    expect(await named("TABLE")).toEqual(["a", "b", "poison"]);
    expect(await millrace.api.post(replay)).toMatchObject({ status: 404 });
  });
});

describe("the tasks that follow an event", () => {
  test("may fail as they like: the event is taken all the same", async () => {
    await millrace.api.post(`${path}:ready`);
    const model = { embedding: { provider: "builtin", model: "hash-v1" } };
    expect((await millrace.api.put(`${path}/model`, model)).status).toBe(200);
    const tasks = async () =>
      (await database.query("select 1 from lineage.ol_async_task where tenant_id = $1", [tenant.id])).length;
    await post(table("before"));
    const queued = await tasks();
    expect(queued).toBeGreaterThan(0);

    await database.query("alter table lineage.ol_async_task rename to hidden");
    const show = () => database.query("alter table if exists lineage.hidden rename to ol_async_task");
    onTestFinished(async () => void (await show()));
    expect(await post(table("meanwhile"))).toMatchObject({ status: 201, body: { state: "APPLIED" } });
    const both = [table("x"), table("y")];
    expect(await millrace.api.post("/api/v1/lineage/batch", both)).toMatchObject({ body: { status: "success" } });
    await show();
    expect(await named("TABLE")).toEqual(["before", "meanwhile", "x", "y"]);
    expect(await tasks()).toBe(queued);
    await post(table("after"));
    expect(await tasks()).toBeGreaterThan(queued);
  });
});
