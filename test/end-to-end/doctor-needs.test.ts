/** The doctor tells of what has failed and of what is late, in every module. */
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { useMillrace } from "../millrace.ts";
import { until } from "../until.ts";

const millrace = useMillrace(useDatabase(), {
  env: {
    MILLRACE_ROLES: "api,scheduler,worker",
    MILLRACE_SECRET_KEY: "0".repeat(64),
    MILLRACE_WEBHOOKS_ALLOW_PRIVATE: "true",
  },
});

async function finding(name: string): Promise<{ verdict: string; found: string; advice?: string }> {
  const { body } = await millrace.api.get("/api/v1/doctor");
  const all = body["findings"] as { check: string; verdict: string; found: string; advice?: string }[];
  const found = all.find(({ check }) => check === name);
  if (!found) throw new Error(`there is no check ${name}`);
  return found;
}
const put = (path: string, body: object) => millrace.api.put(`/api/v1${path}`, body);
const post = (path: string, body: object = {}) => millrace.api.post(`/api/v1${path}`, body);

test("a failed run, model and delivery, and a late table, are findings; without them all is well", async () => {
  expect(await finding("failures")).toMatchObject({ verdict: "ok" });
  expect(await finding("late tables")).toMatchObject({ verdict: "ok" });

  const nodes = [{ id: "n", type: "sql", cfg: { sql: "select no_such_column" } }];
  const { body: chain } = await post("/chains", { name: "nightly", dagJson: { nodes } });
  await post(`/chains/${String(chain["chainId"])}:start`);
  const model = (sql: string, tables: object[], kpis: string[]) => ({
    name: "m",
    grain: "day",
    sql,
    kpis,
    dependencies: tables,
  });
  await put("/kpi/models/BAD", model("select no_such_column", [{ table: "T" }], []));
  await put("/kpi/models/GOOD", model("select 'K1' as kpi_id, 1 as value", [{ table: "T" }], ["K1"]));
  const late = [{ table: "T" }, { table: "NEVER", deadline: "PT1H" }];
  await put("/kpi/models/WAITS", model("select 1", late, []));
  for (const id of ["BAD", "GOOD", "WAITS"]) await post(`/kpi/models/${id}:publish`);
  await post("/kpi/subscriptions", { kpiId: "K1", callbackUrl: "http://127.0.0.1:9/hook", retryNum: 0 });
  const day = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10).replaceAll("-", "");
  await millrace.api.post("/api/open/kpi/srcTableComplete", { srcTableName: "T", opTime: day });

  const { found, verdict } = await until(async () => {
    const now = await finding("failures");
    return ["nightly", "BAD", "127.0.0.1:9"].every((name) => now.found.includes(name)) && now;
  }, "all three failures to be found");
  expect(verdict).toBe("warning");
  expect(found).toMatch(/^Failed within 7 days, and not repeated: /);
  expect(await finding("late tables")).toMatchObject({
    verdict: "warning",
    found: expect.stringContaining(`The table has not arrived for ${day}. Model WAITS waits for it.`),
    advice: expect.stringContaining("millrace kpi why"),
  });
});
