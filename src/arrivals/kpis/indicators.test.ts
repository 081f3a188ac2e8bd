/** Indicators and their values: definitions, refusals, and formulas whose values always match their parts. */
import { describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { on, TODAY, useKpis } from "../arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database);

const put = (kpiId: string, fields: Json) => kpis.put(`/indicators/${kpiId}`, { name: kpiId, ...fields });
/** Its parts are defined first, if they are not. */
async function computed(kpiId: string, expression: string, fields: Json = {}): ReturnType<typeof put> {
  const answer = await put(kpiId, { type: "COMPUTED", expression, ...fields });
  const { problem, name } = (answer.body["details"] ?? {}) as { problem?: string; name?: string };
  if (problem !== "unknown" || name === undefined) return answer;
  await put(name, { type: "EXTENDED" });
  return computed(kpiId, expression, fields);
}
const remove = (kpiId: string) => kpis.api.delete(`/api/v1/kpi/indicators/${kpiId}`);
/** SQL for DuckDB or Postgres that returns these values. */
const returning = (...rows: [kpiId: string, value: number | null, region?: string][]) => {
  const selects = rows.map(
    ([kpiId, value, region]) =>
      `select '${kpiId}' as kpi_id, ${value} as value${region === undefined ? "" : `, '${region}' as region`}`,
  );
  return { sql: selects.join(" union all "), kpis: [...new Set(rows.map(([kpiId]) => kpiId))] };
};

describe("defining an indicator", () => {
  test("answers 201, and 200 the next time, with all fields", async () => {
    const { status, body } = await put("KD1", { type: "EXTENDED", name: "orders" });
    expect(status).toBe(201);
    expect(body).toEqual({
      kpiId: "KD1",
      type: "EXTENDED",
      name: "orders",
      expression: null,
      dependsOn: [],
      modelId: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect(await computed("KD1", "KD2 / KD3 * 100", { name: "rate" })).toMatchObject({
      status: 200,
      body: { type: "COMPUTED", name: "rate", expression: "KD2 / KD3 * 100", dependsOn: ["KD2", "KD3"] },
    });
    expect((await kpis.get("/indicators/KD1")).body).toMatchObject({ name: "rate", createdAt: body["createdAt"] });
  });

  test("lists, by id, by type and by text", async () => {
    await put("KD1", { type: "EXTENDED", name: "orders" });
    await put("KD_2", { type: "EXTENDED", name: "customers" });
    await computed("KC1", "KD1 * 2");
    const list = async (query: string) => {
      const { body } = await kpis.get<{ items: { kpiId: string }[]; total: number }>(`/indicators${query}`);
      return [...body.items.map(({ kpiId }) => kpiId), body.total];
    };
    expect(await list("")).toEqual(["KC1", "KD1", "KD_2", 3]);
    expect(await list("?type=COMPUTED")).toEqual(["KC1", 1]);
    expect(await list("?q=Order")).toEqual(["KD1", 1]);
    expect(await list("?q=_")).toEqual(["KD_2", 1]);
    expect(await list("?size=1&page=2")).toEqual(["KD1", 3]);
  });

  test("with dryRun answers the result and changes nothing", async () => {
    await put("KD1", { type: "EXTENDED" });
    const formula = { type: "COMPUTED", expression: "KD1 * 2" };
    const wouldBe = { status: 200, body: { ...formula, dependsOn: ["KD1"] } };
    expect(await put("KDRY?dryRun=true", { ...formula, name: "double" })).toMatchObject(wouldBe);
    expect((await kpis.get("/indicators/KDRY")).status).toBe(404);
    const { body: before } = await put("KDRY", { type: "EXTENDED", name: "single" });
    expect(await put("KDRY?dryRun=true", { ...formula, name: "double" })).toMatchObject(wouldBe);
    expect((await kpis.get("/indicators/KDRY")).body).toEqual(before);
    const audited = await database.query("select action from kernel.audit_log where target = 'KDRY'");
    expect(audited).toEqual([{ action: "indicator.create" }]);

    await computed("KC1", "KDRY * 2");
    expect(await put("KDRY?dryRun=true", { ...formula, expression: "KC1" })).toMatchObject({
      status: 400,
      body: { code: "VALIDATION_FAILED", details: { problem: "circle" } },
    });
  });

  test("leaves a row in the audit log", async () => {
    await put("KA", { type: "EXTENDED" });
    await put("KA", { type: "EXTENDED", name: "orders" });
    await remove("KA");
    const rows = await database.query<{ action: string; details: Json }>(
      "select action, details from kernel.audit_log where target = 'KA' order by id",
    );
    expect(rows.map(({ action }) => action)).toEqual(["indicator.create", "indicator.update", "indicator.delete"]);
    expect(rows[1]?.details["changes"]).toEqual([{ field: "name", from: expect.any(String), to: "orders" }]);
  });

  test.each<[what: string, fields: Json, sentence: string]>([
    [
      "EXTENDED with an expression",
      { type: "EXTENDED", expression: "KD2" },
      "An EXTENDED indicator is fed by a model: leave out `expression` and `dependsOn`.",
    ],
    [
      "EXTENDED with dependsOn",
      { type: "EXTENDED", dependsOn: ["KD2"] },
      "An EXTENDED indicator is fed by a model: leave out `expression` and `dependsOn`.",
    ],
    [
      "COMPUTED without an expression",
      { type: "COMPUTED" },
      "A COMPUTED indicator needs an `expression`, such as `KD1001 / KD1002`.",
    ],
    [
      "dependsOn with one too many",
      { type: "COMPUTED", expression: "KD2 * 2", dependsOn: ["KD2", "KD3"] },
      "`dependsOn` names KD3, but the expression does not use it.",
    ],
    [
      "dependsOn with one too few",
      { type: "COMPUTED", expression: "KD2 * KD3", dependsOn: ["KD3"] },
      "The expression uses KD2, but `dependsOn` does not name it.",
    ],
    ["computed from nothing", { type: "COMPUTED", expression: "1 + 1" }, "`1 + 1` names no KPI to compute KC1 from."],
    ["computed from itself", { type: "COMPUTED", expression: "KC1 + 1" }, "`KC1 + 1` computes KC1 from itself."],
    ["not a number", { type: "COMPUTED", expression: "KD2 > 1" }, "`KD2 > 1` does not give a number."],
  ])("refuses: %s", async (_what, fields, sentence) => {
    expect(await put("KC1", fields)).toMatchObject({
      status: 400,
      body: { error: sentence, code: "VALIDATION_FAILED" },
    });
    expect((await kpis.get("/indicators/KC1")).status).toBe(404);
  });

  test("refuses a formula that is not valid, and says where", async () => {
    const { status, body } = await computed("KC1", "KD2 +* 3");
    expect([status, body["code"]]).toEqual([400, "VALIDATION_FAILED"]);
    expect(body["error"]).toContain("`KD2 +* 3`");
  });

  test("refuses a cycle, and shows it", async () => {
    await computed("KC1", "KD1 * 2");
    await computed("KC2", "KC1 * 2");
    await computed("KC3", "KC2 + KD9");
    expect(await computed("KC1", "KC3 - 1")).toMatchObject({
      status: 400,
      body: { error: "`KC1` would be computed from itself: KC1 -> KC2 -> KC3 -> KC1." },
    });
    expect((await kpis.get("/indicators/KC1")).body).toMatchObject({ expression: "KD1 * 2" });
  });

  test("refuses one of two concurrent changes that form a cycle", async () => {
    for (const kpiId of ["KC1", "KC2"]) await put(kpiId, { type: "EXTENDED" });
    const answers = await Promise.all([computed("KC1", "KC2 * 2"), computed("KC2", "KC1 * 2")]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 400]));
  });

  test("refuses a formula for an indicator that a model feeds", async () => {
    await kpis.define("M", { kpis: ["KD1"] });
    expect(await computed("KD1", "KD2 * 2")).toMatchObject({
      status: 409,
      body: { code: "KPI_FED_ALREADY", details: { kpiId: "KD1", modelId: "M" } },
    });
  });
});

describe("deleting an indicator", () => {
  test("answers it once more and deletes its values", async () => {
    await kpis.publish("M", returning(["KD1", 1], ["KD2", 2]));
    await kpis.arrive("T");
    await kpis.define("M", returning(["KD2", 2]));
    expect(await remove("KD1")).toMatchObject({ status: 200, body: { kpiId: "KD1" } });
    expect(await remove("KD1")).toMatchObject({ status: 404, body: { code: "KPI_NOT_FOUND" } });
    expect(await kpis.values()).toEqual(["KD2=2"]);
  });

  test("is refused while a model feeds it", async () => {
    await kpis.define("M", { kpis: ["KD1"] });
    expect(await remove("KD1")).toMatchObject({
      status: 409,
      body: { error: "Indicator `KD1` is used by `M`. Change or delete that first.", code: "KPI_IN_USE" },
    });
  });

  test("is refused while another is computed from it", async () => {
    await put("KD1", { type: "EXTENDED" });
    await computed("KC1", "KD1 * 2");
    await computed("KC2", "KC1 * 2");
    expect(await remove("KD1")).toMatchObject({ status: 409, body: { details: { kpiId: "KD1", by: "KC1" } } });
    for (const kpiId of ["KC2", "KC1", "KD1"]) expect((await remove(kpiId)).status).toBe(200);
  });
});

describe("values", () => {
  test("are listed by indicator, opTime, range and dimensions", async () => {
    await kpis.publish("M", returning(["KD1", 1, "EU"], ["KD1", 2, "US"], ["KD2", 3, "EU"]));
    for (const opTime of ["20251217", "20251218", "20251219"]) await kpis.arrive("T", opTime);
    const count = async (query: string) => (await kpis.get(`/data?${query}`)).body["total"];
    const eu = encodeURIComponent('{"region":"EU"}');
    expect(await count("")).toBe(9);
    expect(await count("kpiId=KD1")).toBe(6);
    expect(await count("opTime=20251218")).toBe(3);
    expect(await count("from=20251218")).toBe(6);
    expect(await count("from=20251218&to=20251218&kpiId=KD1")).toBe(2);
    expect(await count(`dimensions=${eu}`)).toBe(6);
    expect((await kpis.get(`/data?kpiId=KD1&opTime=20251218&dimensions=${eu}`)).body["items"]).toEqual([
      {
        kpiId: "KD1",
        opTime: "20251218",
        value: 1,
        valueText: "1",
        dimensions: { region: "EU" },
        modelId: "M",
        generation: 1,
        updatedAt: expect.any(String),
      },
    ]);
  });

  test("are listed with the newest opTime first on request, so that the first page has it however many there are", async () => {
    await kpis.publish("M", returning(["KD1", 1], ["KD2", 2]));
    for (const opTime of ["20251217", "20251219", "20251218"]) await kpis.arrive("T", opTime);
    const opTimes = async (query: string) => {
      const { body } = await kpis.get<{ items: Json[] }>(`/data?kpiId=KD1&${query}`);
      return body.items.map((one) => one["opTime"]);
    };
    expect(await opTimes("order=desc&size=2")).toEqual(["20251219", "20251218"]);
    expect(await opTimes("order=desc&size=2&page=2")).toEqual(["20251217"]);
    expect(await opTimes("size=2")).toEqual(["20251217", "20251218"]);
    expect(await opTimes("order=asc&size=1")).toEqual(["20251217"]);
    expect((await kpis.get("/data?order=newest")).status).toBe(400);
  });

  test("of a rerun replace the model's for that opTime, and no others", async () => {
    await kpis.publish("M", returning(["KD1", 1, "EU"], ["KD1", 2, "US"], ["KD2", 3, "EU"]));
    await kpis.publish("OTHER", returning(["KD9", 9]));
    await kpis.arrive("T", "20251218");
    await kpis.arrive("T");
    await kpis.define("M", { ...returning(["KD1", 10, "US"], ["KD2", null, "EU"]), allowEmpty: true });
    const { triggeredModels } = await kpis.arrive("T");
    expect(triggeredModels.find(({ modelId }) => modelId === "M")).toMatchObject({ computeCount: 2, storageCount: 1 });
    expect(await kpis.values()).toEqual(['KD1{"region":"US"}=10', "KD9=9"]);
    expect(await kpis.values("20251218")).toHaveLength(4);
  });

  test("of the last success stay when a run fails", async () => {
    await kpis.publish("M", returning(["KD1", 1]));
    await kpis.arrive("T");
    await kpis.define("M", { sql: "select 'KD1' as kpi_id, 2 as value union all select 'KD8', 1", kpis: ["KD1"] });
    expect((await kpis.arrive("T")).triggeredModels).toMatchObject([
      { status: "FAILED", message: expect.stringContaining("has `KD8`, which is not among the model's kpis (KD1)") },
    ]);
    expect(await kpis.values()).toEqual(["KD1=1"]);
  });

  test("are found by $op_time", async () => {
    await kpis.publish("M", { sql: "select 'KD1' as kpi_id, $op_time::int % 100 as value", kpis: ["KD1"] });
    await kpis.arrive("T", "20251217");
    expect(await kpis.values("20251217")).toEqual(["KD1=17"]);
  });
});

describe("computed values", () => {
  test("follow their parts, in order, and are listed as affected", async () => {
    await computed("KC3", "KC2 - KC1");
    await computed("KC2", "KC1 * 10");
    await computed("KC1", "KD1 + KD2");
    await kpis.publish("M", returning(["KD1", 1], ["KD2", 2]));
    await kpis.arrive("T");
    expect(await kpis.values()).toEqual(["KC1=3", "KC2=30", "KC3=27", "KD1=1", "KD2=2"]);
    expect(await kpis.events("kpi.updated")).toMatchObject([{ affectedKpiIds: ["KD1", "KD2", "KC1", "KC2", "KC3"] }]);
    const { body } = await kpis.get<{ items: Json[] }>("/data?kpiId=KC3");
    expect(body.items).toMatchObject([{ modelId: null, generation: 1 }]);
  });

  test("are one for each set of dimensions; a part without dimensions applies to all", async () => {
    await computed("SHARE", "KD1 / TOTAL * 100");
    await kpis.publish("M", returning(["KD1", 30, "EU"], ["KD1", 70, "US"]));
    await kpis.publish("ALL", { ...returning(["TOTAL", 200]), dependencies: on("T2") });
    await kpis.arrive("T");
    await kpis.arrive("T2");
    const shares = (await kpis.values()).filter((value) => value.startsWith("SHARE")).sort();
    expect(shares).toEqual(['SHARE{"region":"EU"}=15', 'SHARE{"region":"US"}=35']);
  });

  test("that cannot be computed are absent, and `why` gives the reasons", async () => {
    await computed("RATE", "KD1 / KD2");
    await computed("SUM", "KD1 + KD3");
    await kpis.publish("M", returning(["KD1", 1], ["KD2", 0]));
    await kpis.arrive("T");
    expect(await kpis.values()).toEqual(["KD1=1", "KD2=0"]);
    const { computed: missing } = await kpis.why("M");
    expect(missing.find(({ kpiId }) => kpiId === "SUM")).toEqual({ kpiId: "SUM", missing: ["KD3 has no value."] });
    expect(missing.find(({ kpiId }) => kpiId === "RATE")?.missing[0]).toMatch(/`KD1 \/ KD2`.*(zero|0)/i);
  });

  test("are deleted when a part is missing", async () => {
    await computed("RATE", "KD1 / KD2");
    await computed("TWICE", "RATE * 2");
    await kpis.publish("M", returning(["KD1", 6], ["KD2", 3]));
    await kpis.arrive("T");
    expect(await kpis.values()).toEqual(["KD1=6", "KD2=3", "RATE=2", "TWICE=4"]);
    await kpis.define("M", returning(["KD1", 6], ["KD2", 0]));
    await kpis.arrive("T");
    expect(await kpis.values()).toEqual(["KD1=6", "KD2=0"]);
  });

  test("have all parts when two models end at the same time", async () => {
    await computed("SUM", "KD1 + KD2");
    const gate = await kpis.gate();
    const held = (kpiId: string, value: number) => ({
      engine: "warehouse",
      sql: `select '${kpiId}' as kpi_id, ${value} as value ${gate.from}`,
      kpis: [kpiId],
    });
    await kpis.publish("ONE", held("KD1", 1));
    await kpis.publish("TWO", held("KD2", 2));
    // Holds both runs at the point where they would read each other's values.
    const client = await database.db.dedicated("lock");
    try {
      await client.query("select pg_advisory_lock(hashtextextended('arrivals.computed 20251219', 0))");
      await kpis.arriveAsync("T");
      await kpis.reaches("ONE", "RUNNING");
      await kpis.reaches("TWO", "RUNNING");
      await gate.open();
      await kpis.untilBlocked(2, "advisory", "arrivals.computed");
    } finally {
      await client.end();
    }
    await kpis.reaches("ONE", "SUCCESS");
    await kpis.reaches("TWO", "SUCCESS");
    expect(await kpis.values()).toEqual(["KD1=1", "KD2=2", "SUM=3"]);
  });

  test("are never seen without their parts, nor with the parts of another run", async () => {
    await computed("SUM", "KD1 + KD2");
    await computed("TWICE", "SUM * 2");
    await database.query("create table public.counter (n int)");
    await database.query("insert into public.counter values (0)");
    const sql = "select unnest(array['KD1', 'KD2']) as kpi_id, n as value from counter";
    await kpis.publish("M", { engine: "warehouse", sql, kpis: ["KD1", "KD2"] });
    const written = new AbortController();
    const seen = new Set<string>();
    const reader = (async () => {
      while (!written.signal.aborted) {
        const values = await kpis.values();
        if (values.length > 0) seen.add(values.join(" "));
      }
    })();
    for (let n = 1; n <= 20; n += 1) {
      await database.query("update public.counter set n = $1", [n]);
      await kpis.arrive("T", TODAY);
    }
    written.abort();
    await reader;
    const whole = Array.from({ length: 20 }, (_, index) => index + 1).map(
      (n) => `KD1=${n} KD2=${n} SUM=${2 * n} TWICE=${4 * n}`,
    );
    for (const state of seen) expect(whole).toContain(state);
    expect(seen.size).toBeGreaterThan(1);
  });
});
