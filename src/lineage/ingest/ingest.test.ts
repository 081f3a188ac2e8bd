import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { openDb } from "../../kernel/data/db.ts";
import { airflowEvent, gravitinoEvent, gravitinoFacet, type Json, schemaFacet, sparkEvent } from "../events.fixture.ts";
import type { GraphChange } from "../graph/apply.ts";
import { type TestLineage, testLineage } from "../lineage.fixture.ts";
import { lockGraph } from "../store/graph-lock.ts";

const database = useDatabase();
const lineage = testLineage(database);
let tenant: string;

beforeEach(async () => {
  tenant = await lineage.tenant();
});

/** Another process, with connections of its own. */
function anotherProcess(deps: Parameters<typeof testLineage>[1] = {}): { lineage: TestLineage; end(): Promise<void> } {
  const db = openDb({ connection: database.connection, applicationName: "another", poolSize: 4 });
  let ended: Promise<void> | undefined;
  const end = () => {
    ended ??= db.close();
    return ended;
  };
  onTestFinished(end);
  return { lineage: testLineage(database, { db, ...deps }), end };
}

const ENGINE = { source: "COMPUTE_ENGINE" } as const;
const table = (name: string, columns: readonly string[] = ["id"], eventTime = "2026-03-01T10:00:00Z"): Json =>
  gravitinoEvent("create_table", { name: `dw.${name}`, eventTime, facets: schemaFacet(columns) });
const countEvents = async (tenantId = tenant) =>
  (await database.query("select 1 from lineage.lineage_events where tenant_id = $1", [tenantId])).length;
const states = (tenantId = tenant) =>
  database.query<{ name: string; state: string; error: string | null }>(
    `select event -> 'outputs' -> 0 ->> 'name' as name, apply_state as state, apply_error as error
     from lineage.lineage_events where tenant_id = $1 order by 1`,
    [tenantId],
  );
const tablesIn = async (tenantId = tenant) =>
  Object.keys((await lineage.graph(tenantId)).nodes).filter((name) => name.startsWith("TABLE"));

describe("the same event", () => {
  test("is kept once, and told to be a duplicate with the id of the first", async () => {
    const first = await lineage.send(tenant, table("orders"));
    expect(first).toMatchObject({ duplicate: false, state: "APPLIED" });
    expect(await lineage.send(tenant, table("orders"))).toEqual({ ...first, duplicate: true });
    expect(await countEvents()).toBe(1);
  });

  test("is kept once when many send it at the same time, to two processes", async () => {
    const other = anotherProcess();
    const both = Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? lineage : other.lineage));
    const taken = await Promise.all(both.map((one) => one.send(tenant, sparkEvent(), ENGINE)));
    expect(new Set(taken.map(({ id }) => id)).size).toBe(1);
    expect(taken.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect(await countEvents()).toBe(1);
  });

  test("is known after a restart", async () => {
    const first = await lineage.send(tenant, table("orders"));
    expect(await anotherProcess().lineage.send(tenant, table("orders"))).toEqual({ ...first, duplicate: true });
  });

  test("is another one for another tenant", async () => {
    const other = await lineage.tenant();
    const [one, two] = [await lineage.send(tenant, table("orders")), await lineage.send(other, table("orders"))];
    expect(two).toMatchObject({ duplicate: false });
    expect(two.id).not.toBe(one.id);
  });

  test("is kept word for word, whatever its spaces and the order of its keys", async () => {
    const body = ` {"outputs": [ ],\n "job":{"name":"j","namespace":"n"}, "run":{"runId":"1"},"eventTime":"2026-03-01T10:00:00Z" } `;
    const event = JSON.parse(body) as Json;
    await lineage.send(tenant, event, { ...ENGINE, body });
    const [row] = await database.query<{ body: string }>(
      "select event::text as body from lineage.lineage_events where tenant_id = $1",
      [tenant],
    );
    expect(row?.body).toBe(body);
  });
});

describe("a run", () => {
  const RUN = "0195a000-0000-7000-8000-0000000000";
  const times = ["START", "RUNNING", "COMPLETE"].map((eventType, n) => ({
    eventType,
    eventTime: `2026-03-01T10:00:0${n}Z`,
  }));
  const executions = async () => Object.values((await lineage.graph(tenant)).executions);

  test("that starts, runs and completes executes its statement once", async () => {
    for (const runId of [`${RUN}01`, `${RUN}02`]) {
      for (const told of times) await lineage.send(tenant, airflowEvent("select 1", { ...told, runId }), ENGINE);
    }
    expect(await executions()).toEqual([2]);
  });

  test("executes it once when all of it comes at the same time, and twice over", async () => {
    const all = [...times, ...times].map((told) => airflowEvent("select 1", { ...told, runId: `${RUN}01` }));
    await Promise.all(all.map((event) => lineage.send(tenant, event, ENGINE)));
    expect(await executions()).toEqual([1]);
  });
});

describe("a tenant that is not ready", () => {
  test("has its events kept and not applied", async () => {
    for (const state of ["NEW", "SYNCING"] as const) {
      const waiting = await lineage.tenant(state);
      expect(await lineage.send(waiting, table("orders"))).toMatchObject({ state: "BUFFERED", duplicate: false });
      expect(await lineage.send(waiting, table("orders"))).toMatchObject({ state: "BUFFERED", duplicate: true });
      expect(await tablesIn(waiting)).toEqual([]);
    }
  });

  test("has what waited applied when it is ready, from the cutover on", async () => {
    const waiting = await lineage.tenant("SYNCING"); // Its cutover is at the beginning of 2026.
    await lineage.send(waiting, table("old", ["id"], "2025-12-31T23:59:59Z"));
    await lineage.send(waiting, table("cutover", ["id"], "2026-01-01T00:00:00Z"));
    await lineage.send(waiting, table("new"));
    expect(await lineage.ingest.makeReady(waiting)).toEqual({ applied: 2, skipped: 1, dead: 0 });
    expect(await tablesIn(waiting)).toEqual(["TABLE gravitino/hive/dw/cutover", "TABLE gravitino/hive/dw/new"]);
    expect(await lineage.send(waiting, table("late", ["id"], "2025-12-31T23:59:59Z"))).toMatchObject({
      state: "SKIPPED",
    });
    expect(await lineage.send(waiting, table("next"))).toMatchObject({ state: "APPLIED" });
    expect(await tablesIn(waiting)).toHaveLength(3);
  });

  test("has the events of its full sync applied at once; columns that they do not list are gone", async () => {
    await lineage.send(tenant, table("orders", ["id", "amount", "old"]));
    await database.query("update lineage.tenant set state = 'SYNCING', cutover_time = $2 where id = $1", [
      tenant,
      "2026-03-02T00:00:00Z",
    ]);
    const sync = table("orders", ["id", "amount", "new"], "2026-03-02T00:00:01Z");
    expect(await lineage.send(tenant, sync, { baseline: true })).toMatchObject({ state: "APPLIED" });
    const columns = Object.keys((await lineage.graph(tenant)).nodes).filter((name) => name.startsWith("COLUMN"));
    expect(columns.map((name) => name.split("/").at(-1))).toEqual(["amount", "id", "new"]);
  });

  test("has what waited applied in the order of time, in steps", async () => {
    const changes: GraphChange[] = [];
    const onChange = async (_tx: unknown, _tenant: string, change: GraphChange) => void changes.push(change);
    const { lineage: watched } = anotherProcess({ onChange });
    const waiting = await lineage.tenant("NEW");
    const names = Array.from({ length: 450 }, (_, n) => `t${String(n).padStart(3, "0")}`);
    const at = (name: string) => new Date(Date.parse("2026-03-01T10:00:00Z") + Number(name.slice(1))).toISOString();
    await Promise.all(names.toReversed().map((name) => watched.send(waiting, table(name, ["id"], at(name)))));
    expect(changes).toEqual([]);
    expect(await watched.ingest.makeReady(waiting)).toEqual({ applied: 450, skipped: 0, dead: 0 });
    const steps = changes.map(({ assets }) =>
      assets.filter(({ name }) => name.kind === "TABLE").map(({ name }) => name.path.at(-1) ?? ""),
    );
    expect(steps.map((step) => step.sort())).toEqual([names.slice(0, 200), names.slice(200, 400), names.slice(400)]);
  });

  test("is made ready by several calls if so much has waited that one would take too long", async () => {
    const clock = { at: 0, now: () => clock.at };
    const onChange = async () => {
      clock.at += 15_000; // So long takes each step.
    };
    const { lineage: slow } = anotherProcess({ clock, onChange });
    const waiting = await lineage.tenant("NEW");
    await Promise.all(Array.from({ length: 450 }, (_, n) => lineage.send(waiting, table(`t${n}`))));
    expect(await slow.ingest.makeReady(waiting)).toEqual({ applied: 400, skipped: 0, dead: 0 });
    expect(await lineage.send(waiting, table("next")), "it is not ready").toMatchObject({ state: "BUFFERED" });
    expect(await slow.ingest.makeReady(waiting)).toEqual({ applied: 51, skipped: 0, dead: 0 });
    expect(await lineage.send(waiting, table("last"))).toMatchObject({ state: "APPLIED" });
  });

  test("holds one connection while it is made ready, however often that is asked for", async () => {
    const waiting = await lineage.tenant("NEW");
    const other = await lineage.tenant();
    await lineage.send(waiting, table("orders"));
    const { lineage: asked } = anotherProcess(); // With four connections.
    const waiters = async () =>
      (
        await database.query(
          `select 1 from pg_locks l join pg_database d on d.oid = l.database
           where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`,
        )
      ).length;
    let calls: Promise<PromiseSettledResult<{ applied: number }>[]> | undefined;
    await database.db.tx(async (tx) => {
      await lockGraph(tx, waiting, "exclusive");
      calls = Promise.allSettled(Array.from({ length: 8 }, () => asked.ingest.makeReady(waiting)));
      await until(async () => (await waiters()) > 0, "the first to wait for the graph");
      expect(await asked.send(other, table("orders")), "other tenants go on").toMatchObject({ state: "APPLIED" });
      expect(await waiters()).toBe(1);
    });
    const applied = (await calls)?.map((call) => call.status === "fulfilled" && call.value.applied);
    expect(applied).toEqual([1, 0, 0, 0, 0, 0, 0, 0]);
  });

  test("loses nothing that comes while it is made ready", async () => {
    const [begun, goOn] = [signal(), signal()];
    const onChange = async () => {
      begun.resolve();
      await goOn.promise;
    };
    const { lineage: replaying } = anotherProcess({ onChange });
    const waiting = await lineage.tenant("NEW");
    await Promise.all(Array.from({ length: 250 }, (_, n) => lineage.send(waiting, table(`before${n}`))));

    const ready = replaying.ingest.makeReady(waiting);
    await begun.promise;
    const meanwhile = Promise.all(Array.from({ length: 150 }, (_, n) => lineage.send(waiting, table(`meanwhile${n}`))));
    await until(async () => {
      const locks = await database.query("select 1 from pg_locks where locktype = 'advisory' and not granted");
      return locks.length > 0;
    }, "those who send to wait");
    goOn.resolve();
    const [{ applied, dead, skipped }, taken] = await Promise.all([ready, meanwhile]);
    await Promise.all(Array.from({ length: 50 }, (_, n) => lineage.send(waiting, table(`after${n}`))));

    expect({ dead, skipped }).toEqual({ dead: 0, skipped: 0 });
    expect(applied).toBe(250 + taken.filter(({ state }) => state === "BUFFERED").length);
    expect(new Set((await states(waiting)).map(({ state }) => state))).toEqual(new Set(["APPLIED"]));
    expect(await tablesIn(waiting)).toHaveLength(450);
  });
});

describe("an event that cannot be applied", () => {
  /** From now on no asset may be called `poison`. */
  async function fault(): Promise<() => Promise<unknown>> {
    await database.query("alter table lineage.node add constraint fault check (name <> 'poison') not valid");
    const fix = () => database.query("alter table lineage.node drop constraint if exists fault");
    onTestFinished(async () => void (await fix()));
    return fix;
  }

  test("is kept as a dead letter with the reason, its neighbours are applied, and it can be tried again", async () => {
    const fix = await fault();
    const names = ["a", "b", "poison", "c"];
    const taken = await Promise.all(names.map((name) => lineage.send(tenant, table(name))));
    expect(taken.map(({ state }) => state)).toEqual(["APPLIED", "APPLIED", "DEAD", "APPLIED"]);
    expect((await states()).map(({ name, state, error }) => [name, state, error?.includes("fault") ?? false])).toEqual([
      ["dw.a", "APPLIED", false],
      ["dw.b", "APPLIED", false],
      ["dw.c", "APPLIED", false],
      ["dw.poison", "DEAD", true],
    ]);
    expect(await tablesIn()).toHaveLength(3);

    const id = taken[2]?.id ?? "";
    expect(await lineage.send(tenant, table("poison"))).toEqual({ id, duplicate: true, state: "DEAD" });
    expect(await lineage.ingest.replay(tenant, id)).toMatchObject({ id, state: "DEAD" });
    await fix();
    expect(await lineage.ingest.replay(tenant, id)).toMatchObject({ id, state: "APPLIED" });
    expect(await tablesIn()).toHaveLength(4);
    expect((await states()).filter(({ state, error }) => state !== "APPLIED" || error !== null)).toEqual([]);
    await expect(lineage.ingest.replay(tenant, id)).rejects.toMatchObject({ code: "DEAD_LETTER_NOT_FOUND" });
  });

  test("tells the same afterwards as if it had been applied at once", async () => {
    const fix = await fault();
    await lineage.send(tenant, table("poison", ["id"], "2026-03-01T10:00:00Z"));
    await fix();
    const rename = gravitinoEvent("alter_table", {
      name: "dw.poison",
      eventTime: "2026-03-01T10:00:01Z",
      facets: gravitinoFacet({ changes: [{ type: "RENAME_TABLE", newName: "cure" }] }),
    });
    await lineage.send(tenant, rename);
    const [dead] = (await states()).filter(({ state }) => state === "DEAD");
    expect(dead).toBeDefined();
    const [row] = await database.query<{ id: string }>(
      "select id::text from lineage.lineage_events where tenant_id = $1 and apply_state = 'DEAD'",
      [tenant],
    );
    await lineage.ingest.replay(tenant, row?.id ?? "");
    const untroubled = await lineage.tenant();
    await lineage.send(untroubled, table("poison", ["id"], "2026-03-01T10:00:00Z"));
    await lineage.send(untroubled, rename);
    expect(await lineage.graph(tenant)).toEqual(await lineage.graph(untroubled));
  });

  test("does not hold up those that waited with it", async () => {
    await fault();
    const waiting = await lineage.tenant("NEW");
    for (const name of ["a", "poison", "b"]) await lineage.send(waiting, table(name));
    expect(await lineage.ingest.makeReady(waiting)).toEqual({ applied: 2, skipped: 0, dead: 1 });
    expect(await tablesIn(waiting)).toHaveLength(2);
    expect(await lineage.send(waiting, table("c"))).toMatchObject({ state: "APPLIED" });
  });

  test.each([
    ["a statement takes too long", "57014"],
    ["a lock is not given", "55P03"],
  ])("is no dead letter if %s: whoever sends it tries again", async (_, code) => {
    await database.query(
      `create function public.too_slow() returns trigger language plpgsql as
       $$ begin raise exception 'too slow' using errcode = '${code}'; end $$`,
    );
    await database.query(
      "create trigger too_slow before insert on lineage.node for each row execute function public.too_slow()",
    );
    const fix = () => database.query("drop function if exists public.too_slow() cascade");
    onTestFinished(async () => void (await fix()));
    const sent = await Promise.allSettled(["a", "b", "c"].map((name) => lineage.send(tenant, table(name))));
    for (const outcome of sent) expect(outcome).toMatchObject({ status: "rejected", reason: { code } });
    expect(await countEvents()).toBe(0);
    await fix();
    expect(await lineage.send(tenant, table("a"))).toMatchObject({ state: "APPLIED", duplicate: false });
  });

  test("is no dead letter if only the transaction has to be run again", async () => {
    await database.query("create sequence public.conflicts");
    await database.query(
      `create function public.conflict() returns trigger language plpgsql as $$ begin
         if nextval('public.conflicts') <= 2 then raise exception 'again' using errcode = '40001'; end if;
         return new;
       end $$`,
    );
    await database.query(
      "create trigger conflict before insert on lineage.node for each row execute function public.conflict()",
    );
    onTestFinished(async () => void (await database.query("drop function public.conflict() cascade")));
    expect(await lineage.send(tenant, table("orders"))).toMatchObject({ state: "APPLIED", duplicate: false });
    expect(await tablesIn()).toEqual(["TABLE gravitino/hive/dw/orders"]);
  });
});

describe("when too much waits", () => {
  /** Nobody can change the tenant's graph until the returned function is called. */
  async function hold(): Promise<() => Promise<void>> {
    const client = await database.db.dedicated("holder");
    onTestFinished(() => client.end());
    await client.query("begin");
    await client.query("lock table lineage.event_key in access exclusive mode");
    return async () => void (await client.query("commit"));
  }
  /** Half of the room is for one tenant. */
  const settings = { waitingMax: 6, waitingBytesMax: 2 ** 30, clockToleranceSeconds: 0 };

  test("events are turned away for the moment, and those that wait are taken", async () => {
    const { lineage: small } = anotherProcess({ settings });
    const letGo = await hold();
    const waiting = ["a", "b", "c"].map((name) => small.send(tenant, table(name)));
    const refusal = { code: "OVERLOADED", status: 503, details: { waiting: 3, seconds: 1 } };
    await expect(small.send(tenant, table("d"))).rejects.toMatchObject(refusal);
    for (const _ of ["there is room for another tenant", "and another", "and a last one"]) {
      waiting.push(small.send(await lineage.tenant(), table("d")));
    }
    await expect(small.send(await lineage.tenant(), table("d"))).rejects.toMatchObject({ details: { waiting: 6 } });
    await letGo();
    expect((await Promise.all(waiting)).map(({ state }) => state)).toEqual(Array(6).fill("APPLIED"));
    expect(await small.send(tenant, table("d")), "once there is room").toMatchObject({ state: "APPLIED" });
    await small.ingest.drain();
  });

  test("what it measures counts too", async () => {
    const waitingBytesMax = 4.5 * JSON.stringify(table("a")).length;
    const { lineage: small } = anotherProcess({ settings: { ...settings, waitingMax: 100, waitingBytesMax } });
    const letGo = await hold();
    const waiting = [small.send(tenant, table("a")), small.send(tenant, table("b"))];
    await expect(small.send(tenant, table("c"))).rejects.toMatchObject({ code: "OVERLOADED" });
    await letGo();
    await Promise.all(waiting);
    expect(await small.send(tenant, table("c"))).toMatchObject({ state: "APPLIED" });
  });
});

test("who cannot have the tenant's graph within some seconds is told to come again", async () => {
  await database.db.tx(async (tx) => {
    await lockGraph(tx, tenant, "shared");
    await expect(lineage.send(tenant, table("orders"))).rejects.toMatchObject({ code: "55P03" });
  });
  expect(await lineage.send(tenant, table("orders"))).toMatchObject({ state: "APPLIED", duplicate: false });
});

test("a tenant that is gone since takes nothing", async () => {
  await expect(lineage.send("999999", table("orders"))).rejects.toMatchObject({ code: "TENANT_UNKNOWN" });
  expect(await countEvents("999999")).toBe(0);
});
