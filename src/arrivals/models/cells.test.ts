/** Readiness in cells, why a table is there or not, and series: what the pages of arrivals read. */
import { expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { on, TODAY, useKpis } from "../arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database);

interface Cells {
  grain: string | null;
  opTimes: string[];
  later: boolean;
  rows: { name: string; title: string | null; cells: string }[];
  next: string | null;
}
const cells = async (query: string) => (await kpis.get<Cells>(`/readiness/cells?${query}`)).body;
const codes = ({ rows }: Cells) => Object.fromEntries(rows.map((row) => [row.name, row.cells]));

test("a cell has a code for what has arrived and for the state of a model, by opTime", async () => {
  await kpis.publish("FAILS", { sql: "select * from nowhere", dependencies: on("A"), kpis: ["KD2"] });
  await kpis.publish("WORKS", { dependencies: on("A", "B") });
  await kpis.define("HIDDEN", { dependencies: on("C"), kpis: [] });
  await kpis.arrive("A", "20251218");
  await kpis.arrive("A", "20251219");
  await kpis.arrive("B", "20251219");
  await kpis.arrive("B", "20251219");
  await kpis.arrive("A", "2025121905"); // An hour is no cell of a day.
  const range = "from=20251218&to=20251220";
  const tables = await cells(`by=table&${range}`);
  expect(tables).toMatchObject({ grain: "day", opTimes: ["20251218", "20251219", "20251220"], next: null });
  expect(codes(tables)).toEqual({ A: "aa.", B: ".m." });
  expect(codes(await cells(`by=model&${range}`))).toEqual({ FAILS: "ff.", WORKS: "ws." });
  expect(codes(await cells(`by=model&${range}&q=work`))).toEqual({ WORKS: "ws." });
});

test("without a range it ends with the newest arrival of the grain of most models", async () => {
  await kpis.publish("M", { grain: "day" });
  await kpis.arrive("T", "20251217");
  await kpis.arrive("T", "zz-not-a-day");
  const { grain, opTimes, rows } = await cells("by=table&last=3");
  expect({ grain, opTimes, rows }).toMatchObject({
    grain: "day",
    opTimes: ["20251215", "20251216", "20251217"],
    rows: [{ name: "T", cells: "..a" }],
  });
  expect((await cells("by=table&last=3&grain=name")).opTimes).toEqual(["20251217", "zz-not-a-day"]);
});

test("half a range has the opTimes from there on, or up to there, and says whether there are later ones", async () => {
  await kpis.publish("M", { grain: "day" });
  for (const opTime of ["20251215", "20251219", "b", "c"]) await kpis.arrive("T", opTime);
  const seen = async (query: string) => {
    const { opTimes, later } = await cells(`by=table&last=2&${query}`);
    return [opTimes.join(" "), later];
  };
  expect(await seen("to=20251216")).toEqual(["20251215 20251216", true]);
  expect(await seen("from=20251216")).toEqual(["20251216 20251217", true]);
  // An arrival of the future is the newest; beyond it there is nothing to see.
  const newest = `${new Date().getUTCFullYear() + 1}0101`;
  await kpis.arrive("T", newest);
  expect(await seen(`from=${newest}`)).toEqual([newest, false]);
  expect(await seen(`to=${newest}`)).toMatchObject([expect.stringContaining(newest), false]);
  expect(await seen("to=b&grain=name")).toEqual([`${newest} b`, true]);
  expect(await seen("from=20251219&grain=name")).toEqual([`20251219 ${newest}`, true]);
  expect(await seen("from=b")).toEqual(["b c", false]);
});

test("pages of rows follow each other by name", async () => {
  for (const id of ["M1", "M2", "M3"]) await kpis.publish(id, { kpis: [`K${id}`], dependencies: on(`T${id}`) });
  const first = await cells("by=model&limit=2&last=2");
  expect([first.rows.map(({ name }) => name), first.next]).toEqual([["M1", "M2"], "M2"]);
  const second = await cells(`by=model&limit=2&last=2&after=${first.next}`);
  expect([second.rows.map(({ name }) => name), second.next]).toEqual([["M3"], null]);
});

test("a range of too many opTimes is refused", async () => {
  const refused = async (query: string) => (await kpis.get(`/readiness/cells?${query}`)).body["error"];
  expect(await refused("by=table&from=20100101&to=20251231")).toBe(
    "The range 20100101 to 20251231 has 5844 opTimes, more than the 2400 of one answer.",
  );
});

test("a table that is missing names its usual time, and one that is there who announced it", async () => {
  await kpis.publish("M", { grain: "day", dependencies: [{ table: "T", deadline: "PT6H" }] });
  for (const [index, day] of ["20251216", "20251217", "20251218"].entries()) {
    await kpis.arriveAsync("T", day);
    // 01:00, 02:00 and 03:00 of the day after.
    await database.query(
      "update arrivals.metrics_etl_log set first_time = to_timestamp($1, 'YYYYMMDD') at time zone 'UTC' + make_interval(days => 1, hours => $2) where op_time = $1",
      [day, index + 1],
    );
  }
  const { body } = await kpis.get(`/arrivals/why?table=T&opTime=${TODAY}`);
  expect(body).toEqual({
    table: "T",
    opTime: TODAY,
    arrival: null,
    usualAt: "2025-12-20T02:00:00.000Z",
    models: [
      { modelId: "M", opTime: TODAY, optional: false, deadline: "2025-12-20T06:00:00.000Z", state: "idle", last: null },
    ],
    more: 0,
  });
  expect((await kpis.why("M")).tables).toMatchObject([{ table: "T", usualAt: "2025-12-20T02:00:00.000Z" }]);
  await kpis.arrive("T");
  const there = await kpis.get(`/arrivals/why?table=T&opTime=${TODAY}`);
  expect(there.body).toMatchObject({
    arrival: { arrivals: 1, announcedBy: "key MILLRACE_ADMIN_KEY" },
    models: [{ last: "SUCCESS" }],
  });
  expect((await kpis.why("M")).tables).toMatchObject([{ announcedBy: "key MILLRACE_ADMIN_KEY" }]);
});

test("a series has a line for each set of dimensions, with gaps left out", async () => {
  await kpis.publish("M", {
    kpis: ["KD1001"],
    sql: "select 'KD1001' as kpi_id, 3 as value, 'EU' as region union all select 'KD1001', 5, 'US' where $op_time <> '20251218'",
  });
  for (const day of ["20251217", "20251218", "20251219"]) await kpis.arrive("T", day);
  const expected = {
    kpis: [
      {
        kpiId: "KD1001",
        modelId: "M",
        lines: [
          { dimensions: { region: "US" }, opTimes: ["20251217", "20251219"], values: [5, 5] },
          { dimensions: { region: "EU" }, opTimes: ["20251217", "20251218", "20251219"], values: [3, 3, 3] },
        ],
        moreLines: 0,
      },
    ],
    moreKpis: 0,
  };
  for (const of of ["kpiId=KD1001", "modelId=M"]) {
    expect((await kpis.get(`/series?${of}&from=20251217&to=20251219`)).body).toMatchObject(expected);
  }
  expect((await kpis.get("/series?from=20251217&to=20251219")).body["error"]).toBe(
    "A series needs either `kpiId` or `modelId`.",
  );
  expect(await kpis.get("/series?kpiId=NONE&from=1&to=2")).toMatchObject({
    status: 404,
    body: { code: "KPI_NOT_FOUND" },
  });
});

test("a backfill of opTimes runs exactly these", async () => {
  await kpis.define("M", { grain: "day" });
  for (const day of ["20251217", "20251218", "20251219"]) await kpis.arrive("T", day);
  await kpis.post("/models/M:publish");
  const opTimes = ["20251217", "20251219", "20251220"];
  const { body } = await kpis.post("/models/M:backfill", { opTimes });
  expect(body).toMatchObject({ runs: 2, items: opTimes.map((opTime) => ({ opTime })) });
  await kpis.reaches("M", "SUCCESS");
  const ran = async () =>
    (await kpis.get<{ items: Json[] }>("/task-logs?modelId=M")).body.items.map((one) => one["opTime"]);
  await expect.poll(async () => (await ran()).map(String).toSorted()).toEqual(["20251217", "20251219"]);
  const refused = await kpis.post("/models/M:backfill", { opTimes, from: "20251217" });
  expect(refused.body["error"]).toBe("A backfill needs either `from` and `to`, or `opTimes`.");
  const other = await kpis.post("/models/M:backfill", { opTimes: ["2025121901"] });
  expect(other.body["error"]).toBe(
    "The opTimes of model `M` are days, which `2025121901` is not (did you mean `20251219`?).",
  );
});
