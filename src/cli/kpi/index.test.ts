/** `millrace arrive` and `millrace kpi` against the real server: tables arrive, models wait, run and fail. */
import { beforeAll, expect, test } from "vitest";
import { cliFor } from "../../../test/cli-in-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";

const server = useMillrace(useDatabase(), {
  env: { MILLRACE_ROLES: "api,scheduler,worker", MILLRACE_SECRET_KEY: "5e".repeat(32) },
});
const millrace = (...words: string[]) => cliFor(server)(...words);
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/;

beforeAll(async () => {
  const rows = "(values ('KD1', 10, 'EU'), ('KD1', 20, 'US')) as rows(kpi_id, value, region)";
  await define("ORDERS", { sql: `from ${rows}`, tables: ["DW_A", "DW_B"], kpis: ["KD1"], grain: "day" });
  await server.api.put("/api/v1/kpi/indicators/KD2", { type: "COMPUTED", name: "Double", expression: "KD1 * 2" });
  await define("BROKEN", { sql: "select 1 as nothing", tables: ["DW_BROKEN"] });
  await define("HIDDEN", { sql: "select 1", tables: ["DW_A"], publish: false });
});

async function define(
  id: string,
  {
    tables,
    publish = true,
    kpis = [],
    ...rest
  }: { sql: string; tables: string[]; kpis?: string[]; grain?: string; publish?: boolean },
): Promise<void> {
  const body = { name: `Model ${id}`, dependencies: tables.map((table) => ({ table })), kpis, ...rest };
  expect((await server.api.put(`/api/v1/kpi/models/${id}`, body)).status).toBe(201);
  if (publish) await server.api.post(`/api/v1/kpi/models/${id}:publish`);
}

test("a table arrives, its model waits and explains for what, then runs", async () => {
  const first = await millrace("arrive", "DW_A", "20251219");
  expect(first).toMatchObject({ exit: 0, stderr: "" });
  expect(first.stdout).toBe(`DW_A has arrived for 20251219.

MODEL   STATUS
ORDERS  WAITING
HIDDEN  SKIPPED

\`millrace kpi why MODEL OPTIME\` shows what a model waits for.
`);
  const waits = (await millrace("kpi", "why", "ORDERS", "20251219")).stdout;
  expect(waits.replace(TIME, "<time>")).toBe(`ORDERS for 20251219: Waiting for a table: DW_B 20251219.

TABLE  OPTIME    ARRIVED
DW_A   20251219  <time>
DW_B   20251219  missing

What would make it run:
  - The arrival of DW_B 20251219.
  - \`millrace kpi run ORDERS 20251219 --force\`.

Computed indicators without a value:
  - KD2: KD1 has no value.
`);

  const second = await millrace("arrive", "DW_B", "20251219", "--key", "load-1");
  expect(second.stdout).toMatch(/\nORDERS +20251219 +SUCCESS +2 +2\n/);
  const has = (await millrace("kpi", "why", "ORDERS", "20251219")).stdout;
  expect(has).toMatch(/^ORDERS for 20251219: It has used everything that has arrived, in generation 1\.\n/);
  expect(has).toMatch(/^DW_B +20251219 +\S+ +generation 1$/m);
  expect(has).toMatch(/^RUN +GENERATION +STATUS .*\n\d+ +1 +SUCCESS +\S+ +\S+ +2 +2 +DW_B 20251219$/m);
  expect(has).toContain("\n  - `millrace kpi run ORDERS 20251219`.\n");
  const repeated = await millrace("arrive", "DW_B", "20251219", "--key", "load-1", "--json");
  expect(JSON.parse(repeated.stdout)).toMatchObject({ triggeredModels: [{ modelId: "ORDERS", generation: 1 }] });
});

test("the lists show models, values, runs and arrivals", async () => {
  expect((await millrace("kpi", "models", "--state", "unpublished")).stdout).toMatch(
    /^MODEL .*\nHIDDEN +Model HIDDEN +unpublished +SQL on duckdb +DW_A +auto\n$/,
  );
  expect((await millrace("kpi", "models", "--state", "no")).exit).toBe(2);
  const data = (await millrace("kpi", "data", "KD2", "--op-time", "20251219")).stdout;
  expect(data).toMatch(/^KD2 +20251219 +region=EU +20 +computed +1 +\S+\nKD2 +20251219 +region=US +40 +computed/m);
  expect(
    (await millrace("kpi", "data", "--dimensions", '{"region":"EU"}', "--from", "2025", "--to", "2026")).stdout,
  ).toMatch(/^KPI.*\nKD1 .*EU +10 +ORDERS .*\nKD2 .*EU +20 +computed .*\n$/);
  expect((await millrace("kpi", "runs", "ORDERS", "--status", "success")).stdout).toMatch(
    /^\d+ +ORDERS +20251219 +1 +SUCCESS/m,
  );
  expect((await millrace("kpi", "arrivals", "--op-time", "20251219")).stdout).toMatch(
    /^TABLE.*\nDW_B +20251219 +\S+ +1 .*\nDW_A +20251219 +\S+ +1 /,
  );
  expect(await millrace("kpi", "runs", "NOBODY")).toMatchObject({
    exit: 4,
    stderr: "There is no model `NOBODY`. [MODEL_NOT_FOUND]\n",
  });
});

test("readiness shows what has arrived and what has not", async () => {
  expect((await millrace("kpi", "readiness", "20251218", "20251220")).stdout).toBe(`202512    18 19 20
DW_A      ·  ✓  ·
DW_B      ·  ✓  ·
DW_BROKEN ·  ·  ·
BROKEN    ·  ·  ·
ORDERS    ·  ✓  ·

· nothing yet   ✓ arrived or succeeded
`);
});

test("a model that fails is exit code 1, and `why` shows the error of its engine", async () => {
  const { exit, stdout } = await millrace("arrive", "DW_BROKEN", "x1");
  expect({ exit, stdout }).toMatchObject({ exit: 1, stdout: expect.stringMatching(/^BROKEN +x1 +FAILED +.*kpi_id/m) });
  const failed = (await millrace("kpi", "why", "BROKEN", "x1")).stdout;
  expect(failed).toMatch(/^BROKEN for x1: Its last run, generation 1, failed: .*kpi_id/);
  expect(failed).toMatch(/^DW_BROKEN +x1 +\S+ +generation 1, which failed$/m);
  expect(failed).toContain(`What would make it run:
  - If its SQL is at fault: correct it (\`millrace kpi apply\`), then run it again.
  - \`millrace kpi retry BROKEN x1\`.
  - Any of its tables arriving again.
`);
  const again = await millrace("kpi", "run", "BROKEN", "x1");
  expect({ exit: again.exit, stdout: again.stdout }).toMatchObject({
    exit: 1,
    stdout: expect.stringMatching(/^BROKEN for x1: FAILED: .*kpi_id/),
  });
  const running = await millrace("kpi", "run", "BROKEN", "x1", "--no-wait");
  expect({ exit: running.exit, stdout: running.stdout }).toEqual({ exit: 0, stdout: "BROKEN for x1: RUNNING.\n" });
});

test("a model is run by hand, forced, and backfilled", async () => {
  expect(await millrace("kpi", "run", "ORDERS", "20251219")).toMatchObject({
    exit: 0,
    stdout: "ORDERS for 20251219: SUCCESS, 2 computed, 2 stored.\n",
  });
  expect(await millrace("kpi", "run", "ORDERS", "20251218")).toMatchObject({
    exit: 3,
    stderr: expect.stringContaining("missing: DW_A 20251218, DW_B 20251218."),
  });
  expect((await millrace("kpi", "run", "ORDERS", "20251218", "--force")).exit).toBe(0);
  const dry = await millrace("kpi", "backfill", "ORDERS", "20251218", "20251219", "--dry-run");
  expect(dry.stdout).toBe(`OPTIME    RUNS  MISSING
20251218  no    DW_A 20251218, DW_B 20251218
20251219  yes

1 of 2 opTimes would run.
`);
  expect((await millrace("kpi", "backfill", "ORDERS", "20251219", "20251219")).stdout).toMatch(
    /\n1 of 1 opTime is queued\.\n$/,
  );
});

test("a model is unpublished and published, and a missing one is exit code 4", async () => {
  expect((await millrace("kpi", "unpublish", "ORDERS")).stdout).toBe("ORDERS is not published.\n");
  expect((await millrace("kpi", "why", "ORDERS", "20251219")).stdout).toMatch(
    /^ORDERS for 20251219: The model is not published/,
  );
  expect((await millrace("kpi", "run", "ORDERS", "20251219")).exit).toBe(3);
  expect((await millrace("kpi", "publish", "ORDERS")).stdout).toBe("ORDERS is published.\n");
  expect((await millrace("kpi", "publish", "NOBODY")).exit).toBe(4);
  expect((await millrace("kpi", "why", "NOBODY", "1")).exit).toBe(4);
});

test("a table that no model needs is recorded, and a wrong opTime refused", async () => {
  expect((await millrace("arrive", "DW_NOBODY", "20251219")).stdout).toBe(
    "DW_NOBODY has arrived for 20251219. No model depends on it.\n",
  );
  expect((await millrace("kpi", "arrivals", "DW_NOBODY")).stdout).toContain("DW_NOBODY  20251219");
  const mistyped = await millrace("arrive", "DW_B", "2025-12-19", "--no-wait");
  expect({ exit: mistyped.exit, stdout: mistyped.stdout, stderr: mistyped.stderr }).toEqual({
    exit: 2,
    stdout: "",
    stderr:
      "`DW_B` arrives for days (yyyyMMdd), which `2025-12-19` is not (did you mean `20251219`?). " +
      "With `--force` it is announced all the same. [VALIDATION_FAILED]\n",
  });
  expect((await millrace("kpi", "arrivals", "--op-time", "2025-12-19")).stdout).not.toContain("DW_B");
  expect((await millrace("arrive", "DW_B", "spring", "--force")).stdout).toMatch(
    /^DW_B has arrived for spring\. .*opTime.*\n$/,
  );
  expect(await millrace("arrive", "DW_A", "the day")).toMatchObject({ exit: 2, stdout: "" });
});
