/** Readiness over a range of opTimes: what has arrived, and the states of the published models. */
import { expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { on, useKpis } from "../arrivals.fixture.ts";

const kpis = useKpis(useDatabase());

interface Readiness {
  opTimes: string[];
  tables: { table: string; cells: Record<string, Json> }[];
  models: { modelId: string; cells: Record<string, Json> }[];
  partial: boolean;
}
const readiness = (from: string, to: string) => kpis.get<Readiness>(`/readiness?from=${from}&to=${to}`);

test("tables and models by opTime, with empty cells where there is nothing", async () => {
  await kpis.publish("FAILS", { sql: "select * from nowhere", dependencies: on("A"), kpis: ["KD2"] });
  await kpis.publish("WORKS", { dependencies: on("A", "B") });
  await kpis.define("HIDDEN", { dependencies: on("C"), kpis: [] });
  await kpis.arrive("A", "20251218");
  await kpis.arrive("A", "20251219");
  await kpis.arrive("B", "20251219");
  await kpis.arrive("B", "20251219");
  await kpis.arrive("C", "20251219");
  const { status, body } = await readiness("20251218", "20251220");
  expect(status).toBe(200);
  const at = expect.stringMatching(/Z$/) as unknown;
  expect(body).toEqual({
    opTimes: ["20251218", "20251219", "20251220"],
    tables: [
      {
        table: "A",
        cells: { "20251218": { arrivedAt: at, arrivals: 1 }, "20251219": { arrivedAt: at, arrivals: 1 } },
      },
      { table: "B", cells: { "20251219": { arrivedAt: at, arrivals: 2 } } },
    ],
    models: [
      {
        modelId: "FAILS",
        cells: {
          "20251218": { state: "idle", generation: 1, last: "FAILED" },
          "20251219": { state: "idle", generation: 1, last: "FAILED" },
        },
      },
      {
        modelId: "WORKS",
        cells: {
          "20251218": { state: "waiting", generation: 0, last: null },
          "20251219": { state: "idle", generation: 2, last: "SUCCESS" },
        },
      },
    ],
    partial: false,
  });
});

test("a range of hours, days or months lists all of them; any other lists what has arrived, in text order", async () => {
  const opTimes = async (from: string, to: string) => (await readiness(from, to)).body.opTimes;
  for (const opTime of ["batch-2", "batch-10", "batch-3", "20251231"]) await kpis.arrive("T", opTime);
  expect(await opTimes("2025123122", "2026010101")).toEqual(["2025123122", "2025123123", "2026010100", "2026010101"]);
  expect(await opTimes("20251231", "20260101")).toEqual(["20251231", "20260101"]);
  expect(await opTimes("202512", "202602")).toEqual(["202512", "202601", "202602"]);
  expect(await opTimes("batch-1", "batch-9")).toEqual(["batch-10", "batch-2", "batch-3"]);
  expect(await opTimes("20251231", "batch-2")).toEqual(["20251231", "batch-10", "batch-2"]);
  expect(await opTimes("z", "a")).toEqual([]);
});

test("a range that is not valid or too large is refused", async () => {
  expect(await readiness("20251220", "20251219")).toMatchObject({
    status: 400,
    body: { error: "The range's `to` (20251219) is before its `from` (20251220).", code: "VALIDATION_FAILED" },
  });
  expect(await readiness("20250101", "20260205")).toMatchObject({
    status: 400,
    body: { error: "The range 20250101 to 20260205 has 401 opTimes, but at most 400 are shown at once." },
  });
  expect((await readiness("20250101", "20260204")).status).toBe(200);
});
