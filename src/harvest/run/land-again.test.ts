/** A table that has landed shows what came later, also where the later harvest of its window did not end well. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { endOf, plan } from "../harvest.fixture.ts";
import { type Asked, correct, itemsOf, type Said, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database, { MILLRACE_LAKE_DIR: mkdtempSync(join(tmpdir(), "millrace-lake-")) });

const landedRows = async (source: string): Promise<number | null | undefined> =>
  (
    await database.query<{ rows: number | null }>(
      `select l.rows::int from harvest.landing l join harvest.reg_prov_endpoint_def e using (endpoint_id)
       where e.provenance_code = $1 and l.status_code = 'LANDED'`,
      [source],
    )
  )[0]?.rows;

const lands = (source: string, rows: number) =>
  until(async () => (await landedRows(source)) === rows || undefined, `${rows} rows in the table of ${source}`);

/** A day of 20 records that was complete and has landed. */
async function landedSource(): Promise<string> {
  const table = `table_${Math.random().toString(36).slice(2)}`;
  const source = await harvests.source(correct(itemsOf(20)), { landing: { table, grain: "day" } });
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
  await lands(source, 20);
  return source;
}

test("a day of which a plan has only a part does not land, which the plan says until another brings the rest", async () => {
  const hours = { granularity: "PT1H", format: "iso", align: "hour", minWindow: "PT1H" };
  const landing = { table: `table_${Math.random().toString(36).slice(2)}`, grain: "day" };
  const source = await harvests.source(correct(itemsOf(20).slice(1)), { window: hours, landing });
  const planned = async (from: string, to: string) => {
    const { planId } = await plan(harvests.api, { source, window: { from, to } });
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
    return async () => (await harvests.api.get<{ landing: object }>(`/api/v1/harvest/plans/${planId}`)).body.landing;
  };
  const first = await planned("2026-07-31T06:00:00Z", "2026-08-01T18:00:00Z");
  expect(await first()).toMatchObject({ windows: {}, grain: "day", partial: ["20260731", "20260801"] });
  const second = await planned("2026-08-01T18:00:00Z", "2026-08-02T00:00:00Z");
  await lands(source, 19);
  expect(await first()).toMatchObject({ partial: ["20260731"] });
  expect(await second()).toMatchObject({ windows: { LANDED: 1 }, partial: [] });
});

const isFirstPage = ({ query }: Asked) => query.get("offset") === "0";
/** The first page has a record that was not there before. */
const withNew = (request: Asked): Said & { body: { total: number; items: object[] } } =>
  correct([{ id: "new", updated: "2026-08-01T00:00:00.000Z" }, ...itemsOf(20)])(request) as never;

describe("a window that was complete once lands again with the records of a later slice", () => {
  test("that ends INCOMPLETE", async () => {
    const source = await landedSource();
    harvests.server.on(source, (request) => {
      const said = withNew(request);
      said.body.total += 5;
      return said;
    });
    expect(await harvests.harvest(source)).toMatchObject({ status: "FAILED", slices: { INCOMPLETE: 1 } });
    await lands(source, 21);
  });

  test("that ends FAILED", async () => {
    const source = await landedSource();
    harvests.server.on(source, (request) => (isFirstPage(request) ? withNew(request) : { status: 400, body: {} }));
    expect(await harvests.harvest(source)).toMatchObject({ status: "FAILED", slices: { FAILED: 1 } });
    await lands(source, 21);
  });

  test("whose task is given up", async () => {
    const source = await landedSource();
    const later = { status: 429, headers: { "retry-after": "3600" }, body: {} };
    harvests.server.on(source, (request) => (isFirstPage(request) ? withNew(request) : later));
    const planId = await harvests.plan(source);
    await harvests.waits(planId);
    expect(await landedRows(source)).toBe(20);
    // A process that executes it dies, and is not the first one.
    await database.query(
      `with dead as (insert into kernel.session (process, roles, version, expires_at)
                     values ('dead', '{}', '1', now() - interval '1 second') returning id)
       update harvest.ing_task set status_code = 'EXECUTING', session_id = dead.id, fence = 1, scheduled_at = null,
         wait_reason = null, lost_count = 1000 from dead where plan_id = $1 and status_code = 'QUEUED'`,
      [planId],
    );
    const ended = await until(async () => {
      const slices = await harvests.slices(planId);
      return slices[0]?.status === "READY" ? undefined : slices;
    }, "the end of the slice");
    expect(ended).toMatchObject([{ status: "FAILED" }]);
    await lands(source, 21);
  }, 40_000);
});
