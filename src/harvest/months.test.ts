import { expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { silentLog } from "../../test/log.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { createMonths } from "./months.ts";
import { addMonths } from "./store/records/months.ts";

const database = useDatabase();

async function partitionsOf(table: string): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1",
    [table],
  );
  return rows.map(({ name }) => name);
}

test("a batch is in the partition of its plan's month from the first day on", async () => {
  const month = new Date().toISOString().slice(0, 7).replace("-", "");
  expect(await partitionsOf("harvest.ing_task_run_batch")).toContain(`harvest.ing_task_run_batch_${month}`);
  expect(await partitionsOf("harvest.ing_cursor_event")).toContain(`harvest.ing_cursor_event_${month}`);
});

test("months that are missing are added once, however many processes try", async () => {
  const added = await Promise.all([1, 2, 3, 4].map(() => addMonths(database.db, "2041-11-15", 3)));
  expect(added.reduce((sum, one) => sum + one, 0)).toBe(6);
  expect(await partitionsOf("harvest.ing_task_run_batch")).toEqual(
    expect.arrayContaining(["204111", "204112", "204201"].map((month) => `harvest.ing_task_run_batch_${month}`)),
  );
  expect(await addMonths(database.db, "2041-11-15", 3)).toBe(0);
});

test("ids that a source did not answer are forgotten when they expire", async () => {
  await database.query(
    `insert into harvest.reg_provenance (provenance_code, name, base_url, updated_by) values ('shop', 'shop', '', '')`,
  );
  await database.query(
    `with endpoint as (
       insert into harvest.reg_prov_endpoint_def (provenance_code, endpoint_name, role_code, http_method, path_template)
       values ('shop', 'orders', 'SEARCH', 'GET', '') returning endpoint_id)
     insert into harvest.bad_id (endpoint_id, item_id, reason, expires_at)
     select endpoint_id, n::text, 'why', now() + make_interval(days => n) from endpoint, generate_series(-1, 1) n`,
  );
  const service = createMonths({ db: database.db, clock: systemClock, log: silentLog, onRun: () => {} });
  expect(await service.runOnce()).toMatchObject({ expired: 2 });
  expect(await database.query("select item_id from harvest.bad_id")).toEqual([{ item_id: "1" }]);
});
