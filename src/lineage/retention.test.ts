import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { silentLog } from "../../test/log.ts";
import type { Service } from "../kernel/work/service.ts";
import { gravitinoEvent, gravitinoFacet, type Json, runEvent, schemaFacet, sparkEvent } from "./events.fixture.ts";
import { sourceOf } from "./graph/stories.fixture.ts";
import { testLineage } from "./lineage.fixture.ts";
import { createRetention } from "./retention.ts";

const KEEP_DAYS = 90;
const database = useDatabase();
const lineage = testLineage(database);
let retention: Service;
let tenant: string;

beforeEach(async () => {
  retention = createRetention({ ...database, log: silentLog, onRun: () => {}, settings: { keepDays: KEEP_DAYS } });
  tenant = await lineage.tenant();
});

const at = (second: number, event: Json): Json => ({ ...event, eventTime: `2026-03-01T10:00:0${second}Z` });
const send = async (...events: Json[]) => {
  for (const event of events) await lineage.send(tenant, event, { source: sourceOf(event) });
};
const create = (name: string, ...columns: string[]) =>
  gravitinoEvent("create_table", { name: `dw.${name}`, facets: schemaFacet(columns) });
const rename = (name: string, newName: string) =>
  gravitinoEvent("alter_table", {
    name: `dw.${name}`,
    facets: gravitinoFacet({ changes: [{ type: "RENAME_TABLE", newName }] }),
  });

/** The name of the month so many months from now, as partitions have it. */
const partition = async (months: number) => {
  const [row] = await database.query<{ name: string }>(
    "select to_char(now() + make_interval(months => $1), '\"lineage_events_\"YYYY_MM') as name",
    [months],
  );
  return row?.name ?? "";
};
const partitions = async () =>
  (
    await database.query<{ name: string }>(
      "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'lineage.lineage_events'::regclass",
    )
  ).map(({ name }) => name.replace("lineage.", ""));
/** As if all that the tenant was told so far had been told so many days ago. */
async function age(days: number): Promise<void> {
  await database.query("select lineage.ensure_month((now() - make_interval(days => $1))::date)", [days]);
  for (const [name, column] of [
    ["lineage_events", "created_at"],
    ["event_key", "seen_at"],
    ["execution", "created_at"],
  ]) {
    const update = `update lineage.${name} set ${column} = ${column} - make_interval(days => $2) where tenant_id = $1`;
    await database.query(update, [tenant, days]);
  }
}
const countEvents = async () =>
  (await database.query("select 1 from lineage.lineage_events where tenant_id = $1", [tenant])).length;

test("there is a partition for this month and the next before they come", async () => {
  await retention.runOnce();
  expect(await partitions()).toEqual(expect.arrayContaining(await Promise.all([0, 1].map(partition))));
  await send(create("orders", "id"));
  const [row] = await database.query<{ name: string }>(
    "select tableoid::regclass::text as name from lineage.lineage_events where tenant_id = $1",
    [tenant],
  );
  expect(row?.name).toBe(`lineage.${await partition(0)}`);
  await expect(retention.runOnce(), "making them again").resolves.toBeDefined();
});

test("a month that has events in the default partition already goes on without one of its own", async () => {
  const month = "2031-05-01";
  await send(create("orders", "id"));
  await database.query("update lineage.lineage_events set created_at = $2 where tenant_id = $1", [tenant, month]);
  const made = await database.query("select lineage.ensure_month($1) as made", [month]);
  expect(made).toEqual([{ made: false }]);
  expect(await countEvents()).toBe(1);
});

describe("after the time that events are kept", () => {
  test("months go as a whole, and what they told stays in the graph", async () => {
    await send(at(1, create("orders", "id")), at(2, sparkEvent()), at(3, runEvent()));
    const before = await lineage.graph(tenant);
    await age(KEEP_DAYS + 62);
    const old = (await partitions()).length;
    const { dropped } = await retention.runOnce();
    expect(dropped).toBeGreaterThan(0);
    expect(await partitions()).toHaveLength(old - (dropped ?? 0));
    expect(await countEvents()).toBe(0);
    expect(await lineage.graph(tenant)).toEqual(before);
  });

  test.each(["BUFFERED", "DEAD"])(
    "an event that is %s keeps itself and not the others of its month, of whichever tenant",
    async (state) => {
      const other = await lineage.tenant();
      await send(at(1, create("applied", "id")), at(2, create("skipped", "id")), at(3, create("waiting", "id")));
      const set = (name: string, to: string) =>
        database.query(
          "update lineage.lineage_events set apply_state = $2 where tenant_id = $1 and event -> 'outputs' -> 0 ->> 'name' = $3",
          [tenant, to, `dw.${name}`],
        );
      await set("skipped", "SKIPPED");
      await set("waiting", state);
      await age(KEEP_DAYS + 62);
      const waiting = tenant;
      tenant = other;
      await send(at(1, create("applied", "id")));
      await age(KEEP_DAYS + 62);
      const months = await partitions();
      const before = await lineage.graph(other);
      await retention.runOnce();
      const left = await database.query(
        "select tenant_id, apply_state from lineage.lineage_events where tenant_id = any($1::bigint[])",
        [[waiting, other]],
      );
      expect(left).toEqual([{ tenant_id: waiting, apply_state: state }]);
      expect(await lineage.graph(other), "what was told stays").toEqual(before);
      await database.query("update lineage.lineage_events set apply_state = 'APPLIED' where tenant_id = $1", [waiting]);
      await retention.runOnce();
      expect((await partitions()).length, "the month goes once nothing waits in it").toBeLessThan(months.length);
    },
  );

  test("what was never applied stays, where no month took it", async () => {
    await send(at(1, create("applied", "id")));
    for (const state of ["BUFFERED", "DEAD", "SKIPPED"]) {
      await send(at(2, create(state.toLowerCase(), "id")));
      await database.query(
        `update lineage.lineage_events set apply_state = $2
         where tenant_id = $1 and event -> 'outputs' -> 0 ->> 'name' = $3`,
        [tenant, state, `dw.${state.toLowerCase()}`],
      );
    }
    // Of a time that no partition is for.
    await database.query("update lineage.lineage_events set created_at = '2020-05-01' where tenant_id = $1", [tenant]);
    await retention.runOnce();
    const left = await database.query<{ state: string }>(
      "select apply_state as state from lineage.lineage_events where tenant_id = $1 order by 1",
      [tenant],
    );
    expect(left).toEqual([{ state: "BUFFERED" }, { state: "DEAD" }]);
  });

  test("younger months stay", async () => {
    await send(create("orders", "id"));
    await age(KEEP_DAYS - 10);
    await retention.runOnce();
    expect(await countEvents()).toBe(1);
  });

  test("an assertion whose events are gone is still read again when a late drop asks for it", async () => {
    await send(at(3, create("orders", "new")), at(1, create("orders", "old")));
    await age(KEEP_DAYS + 62);
    await retention.runOnce();
    await send(at(2, gravitinoEvent("drop_table", { name: "dw.orders" })));
    const columns = Object.keys((await lineage.graph(tenant)).nodes).filter((name) => name.startsWith("COLUMN"));
    expect(columns).toEqual(["COLUMN gravitino/hive/dw/orders/new"]);
  });

  test("what two tables were told in the same words is still told of both", async () => {
    await send(at(1, create("a", "x")), at(2, rename("a", "b")), at(3, create("a", "x")));
    const before = await lineage.graph(tenant);
    await age(KEEP_DAYS + 62);
    await retention.runOnce();
    // Tells nothing new, and is a reason to read everything again.
    await send(at(0, gravitinoEvent("drop_table", { name: "dw.a" })));
    expect(await lineage.graph(tenant)).toEqual(before);
  });

  test("fingerprints and runs are deleted, in steps", async () => {
    await send(at(1, sparkEvent()));
    await age(KEEP_DAYS + 1);
    const rows = async () =>
      (
        await database.query(
          `select 1 from lineage.event_key where tenant_id = $1
           union all select 1 from lineage.execution where tenant_id = $1`,
          [tenant],
        )
      ).length;
    expect(await rows()).toBe(2);
    await retention.runOnce();
    expect(await rows()).toBe(0);
    expect(Object.values((await lineage.graph(tenant)).executions), "what was counted stays").toEqual([1]);
  });
});
