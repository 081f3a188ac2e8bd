/** `millrace harvest run`, `status` and the lists, against a fake server that the test controls. */
import { describe, expect, test } from "vitest";
import { runCli } from "../../../test/cli-in-process.ts";
import { until } from "../../../test/until.ts";
import { at, completeOf, failedOf, landingOf, PLAN_ID, planOf } from "./plan.fixture.ts";
import { startPlanServer } from "./server.fixture.ts";

const lines = (text: string) => text.split("\n").filter((line) => line !== "");
const MADE = { planId: PLAN_ID, notes: ["The window ends at noon."], warnings: [], slices: 2 };

async function startWithPlan(plan = planOf()) {
  const server = await startPlanServer(plan);
  server.answers["POST /plans"] = [201, MADE];
  return server;
}

describe("run", () => {
  test("makes the plan that its flags ask for, and waits until its windows have landed", async () => {
    const server = await startWithPlan();
    const words = ["--endpoint", "orders", "--last", "P2D", "--priority", "7", "--param", "a=1=2", "--param", "b="];
    const run = server.cli("run", "shop", ...words);
    await server.polls(2);
    const landings = [landingOf("20260820", { rows: 6_000 }), landingOf("20260821", { status: "LANDING" })];
    server.plan = completeOf({ landings });
    await server.polls(server.asked.length + 1);
    server.plan = completeOf();
    const ended = await run.ended;
    expect(ended).toMatchObject({
      exit: 0,
      stdout: `plan ${PLAN_ID} of shop/orders, 2026-08-20 to 2026-08-22
plan ${PLAN_ID} COMPLETE in 12.3s
expected 6,403, received 6,403: inserted 6,000, updated 3, unchanged 400, deleted 0, quarantined 0, missing 0, gaps 0
landed shop_orders 20260820: 6,000 rows
landed shop_orders 20260821: 403 rows
`,
    });
    expect(lines(ended.stderr)[0]).toBe("The window ends at noon.");
    expect(server.asked[0]).toEqual({
      method: "POST",
      path: "/plans",
      query: { dryRun: "false" },
      body: { source: "shop", endpoint: "orders", window: { last: "P2D" }, params: { a: "1=2", b: "" }, priority: 7 },
    });
  });

  test("lists gaps and exits with 1 if the plan fails", async () => {
    const server = await startWithPlan(failedOf());
    const { exit, stdout } = await server.cli("run", "shop", "--param", "a=1").ended;
    expect(exit).toBe(1);
    expect(lines(stdout).slice(-3)).toEqual([
      "gap 2026-08-21 to 2026-08-22 FAILED, slice 7, 403 records missing: GET https://api.example.org/orders answered 500",
      "When the reason is removed, `millrace harvest run shop --endpoint orders --from 2026-08-21T00:00:00Z --to 2026-08-22T00:00:00Z --param a=1` fills the gap.",
      `One that stays can be accepted: \`millrace harvest accept ${PLAN_ID} 7 --reason TEXT\`.`,
    ]);
  });

  test.each([
    ["cancelled", completeOf({ status: "CANCELLED", landings: [] }), 8],
    ["complete, but a window could not land", completeOf({ landings: [landingOf("1", { status: "FAILED" })] }), 1],
  ])("exits with its own code if the plan is %s", async (_, plan, exit) => {
    expect((await (await startWithPlan(plan)).cli("run", "shop").ended).exit).toBe(exit);
  });

  test("says what the plan waits for", async () => {
    const waiting = [
      { reason: "The daily quota is used up.", tasks: 2, until: at(60) },
      { reason: "No process has the role worker.", tasks: 1, until: null },
    ];
    const server = await startWithPlan(planOf({ waiting, tasks: { QUEUED: 2, EXECUTING: 1 } }));
    const run = server.cli("run", "shop");
    await until(() => run.stderr().includes("slices"), "the line of progress");
    server.plan = completeOf();
    expect(lines((await run.ended).stderr)[1]).toBe(
      "shop/orders: 0/2 slices, 0 records, 0/s; 2 tasks wait until 2026-08-22T10:01:00Z: The daily quota is used up; 1 task waits: No process has the role worker",
    );
  });

  test("says once why a window could not land, again when the reason is another one, and that it is tried again", async () => {
    const server = await startWithPlan();
    const run = server.cli("run", "shop");
    const failing = (opTime: string, error: string) =>
      completeOf({ landings: [landingOf(opTime, { status: "PENDING", error })] });
    for (const error of ["connection refused", "permission denied"]) {
      server.plan = failing("20260820", error);
      await until(() => run.stderr().includes(error), error);
      server.plan = failing("20260821", error);
      await server.polls(server.asked.length + 2);
    }
    await until(() => run.stderr().includes("1 window to land"), "the line of progress");
    server.plan = completeOf();
    const { exit, stderr } = await run.ended;
    expect(exit).toBe(0);
    expect(lines(stderr).filter((line) => line.includes("tried again"))).toEqual([
      "shop/orders: 20260820 could not land and is tried again: connection refused",
      "shop/orders: 20260820 could not land and is tried again: permission denied",
    ]);
    expect(stderr).toContain("shop/orders: 2/2 slices, 6,403 of 6,403 records; 1 window to land\n");
  });

  test("with --json prints a failed landing with its reason, once", async () => {
    const server = await startWithPlan(
      completeOf({ landings: [landingOf("20260821", { status: "PENDING", error: "connection refused" })] }),
    );
    const run = server.cli("run", "shop", "--json");
    await server.polls(3);
    server.plan = completeOf();
    const { stdout } = await run.ended;
    expect(lines(stdout).filter((line) => line.includes('"error":"connection refused"'))).toHaveLength(1);
  });

  test("ends with the command that resumes, and exits with 1, when all that is left waits since access is refused", async () => {
    const stopped = "shop/orders is paused by Millrace: no access. `millrace harvest resume shop --endpoint orders`.";
    const plan = planOf({
      stopped,
      slices: { FAILED: 1, READY: 1 },
      waits: [{ reason: stopped, tasks: 1, until: null }],
    });
    const server = await startWithPlan(plan);
    const { exit, stdout } = await server.cli("run", "shop").ended;
    expect(exit).toBe(1);
    expect(lines(stdout)[1]).toMatch(/^plan .* is stopped after /);
    expect(lines(stdout).at(-1)).toBe(`stopped: ${stopped}`);
    const events = lines((await server.cli("run", "shop", "--json").ended).stdout);
    expect(JSON.parse(events.at(-1) ?? "")).toEqual({ event: "end", data: { status: "READY", stopped } });
    expect((await server.cli("status", PLAN_ID, "--json").ended).exit).toBe(1);
  });

  test("with --json prints the plan, each state that differs, and the end", async () => {
    const server = await startWithPlan();
    const run = server.cli("run", "shop", "--json");
    await server.polls(3);
    server.plan = completeOf();
    const { exit, stdout } = await run.ended;
    const events = lines(stdout).map((line) => JSON.parse(line) as { event: string; data: unknown });
    expect(exit).toBe(0);
    expect(events.map(({ event }) => event)).toEqual(["plan", "progress", "progress", "end"]);
    expect(events[0]?.data).toEqual(MADE);
    expect(events[2]?.data).toEqual(completeOf());
    expect(events[3]?.data).toEqual({ status: "COMPLETE" });
  });

  test("with --no-wait prints the plan's id", async () => {
    const server = await startWithPlan();
    expect((await server.cli("run", "shop", "--no-wait").ended).stdout).toBe(`${PLAN_ID}\n`);
    expect(JSON.parse((await server.cli("run", "shop", "--no-wait", "--json").ended).stdout)).toEqual(MADE);
    expect(server.asked.every(({ method }) => method === "POST")).toBe(true);
  });

  test("with --dry-run makes no plan", async () => {
    const server = await startWithPlan();
    const window = { from: "2026-08-20T00:00:00.000Z", to: "2026-08-21T00:00:00.000Z" };
    const draft = {
      ...MADE,
      planId: null,
      source: "shop",
      endpoint: "orders",
      operation: "HARVEST",
      window,
      priority: 9,
    };
    server.answers["POST /plans"] = [200, draft];
    for (const command of [
      ["run", "shop", "--dry-run"],
      ["plan", "shop"],
    ]) {
      const { exit, stdout } = await server.cli(...command, "--from", "2026-08-20", "--to", "2026-08-21").ended;
      expect({ exit, stdout }).toEqual({
        exit: 0,
        stdout: "shop/orders, HARVEST, 2026-08-20 to 2026-08-21: 2 slices, priority 9.\nThe window ends at noon.\n",
      });
      expect(server.asked.at(-1)).toMatchObject({
        query: { dryRun: "true" },
        body: { window: { from: "2026-08-20", to: "2026-08-21" } },
      });
    }
  });

  test("passes on why there is nothing to plan", async () => {
    const server = await startWithPlan();
    const error = "There is nothing to plan. The window can be closed at noon, not before.";
    server.answers["POST /plans"] = [409, { error, code: "HARVEST_NOTHING_TO_PLAN" }];
    expect(await server.cli("run", "shop").ended).toEqual({
      exit: 3,
      stdout: "",
      stderr: `${error} [HARVEST_NOTHING_TO_PLAN]\n`,
    });
    expect(JSON.parse((await server.cli("run", "shop", "--json").ended).stdout)).toMatchObject({ error });
    for (const command of ["run", "plan"]) {
      const { stdout } = await server.cli(command, "--help").ended;
      expect(stdout.replaceAll(/\s+/g, " ")).toMatch(/nothing to plan.* the exit code is 3;/);
    }
  });

  test.each([
    [["--from", "2026-08-20"], "--from needs --to. For the last days there is --last P3D."],
    [["--to", "2026-08-20"], "--to needs --from. For the last days there is --last P3D."],
    [["--from", "a", "--to", "b", "--last", "P1D"], "Give either --last, or --from and --to."],
    [["--param", "a"], "--param is `a`. Accepted: name=value."],
    [["--param", "=a"], "--param is `=a`. Accepted: name=value."],
    [["--param", "a=1", "--param", "a=2"], "--param a is given twice."],
  ])("refuses %j", async (words, sentence) => {
    const server = await startWithPlan();
    const ended = await server.cli("run", "shop", ...words).ended;
    expect(ended).toEqual({ exit: 2, stdout: "", stderr: `${sentence}\n` });
    expect(server.asked).toEqual([]);
  });

  test("goes on when the server is away for a while, even if it is at once", async () => {
    const server = await startWithPlan();
    server.answers[`GET /plans/${PLAN_ID}`] = [503, { error: "Stopping.", code: "SHUTTING_DOWN" }];
    const run = server.cli("run", "shop");
    await server.polls(2);
    delete server.answers[`GET /plans/${PLAN_ID}`];
    server.plan = completeOf();
    const { exit, stderr } = await run.ended;
    expect(exit).toBe(0);
    expect(lines(stderr).slice(0, 2)).toEqual(["The window ends at noon.", "Stopping. [SHUTTING_DOWN] Trying again."]);
    expect(lines(stderr).filter((line) => line.endsWith("Trying again."))).toHaveLength(1);
  });
});

describe("status", () => {
  test("shows a plan once, or follows it", async () => {
    const server = await startPlanServer(failedOf());
    const shown = await server.cli("status", PLAN_ID).ended;
    expect(shown).toMatchObject({ exit: 1, stderr: "" });
    expect(lines(shown.stdout).slice(0, 3)).toEqual([
      `shop/orders  FAILED  12.3s  plan ${PLAN_ID}  2026-08-20 to 2026-08-22`,
      "██████████████████████████████  2/2 slices, 6,000 of 6,403 records",
      "expected 6,403, received 6,000: inserted 6,000, updated 0, unchanged 0, deleted 0, quarantined 0, missing 0, gaps 1",
    ]);
    expect(JSON.parse((await server.cli("status", PLAN_ID, "--json").ended).stdout)).toEqual(failedOf());
    expect((await server.cli("status", PLAN_ID, "--follow").ended).exit).toBe(1);
  });

  test("lists the open slices of a plan that goes on", async () => {
    const server = await startPlanServer();
    const slice = { sliceId: 12, window: null, rootSliceId: null, isParted: false, expected: null, received: 3 };
    server.answers[`GET /plans/${PLAN_ID}/slices`] = [200, { items: [slice], next: null }];
    const { stdout } = await server.cli("status", PLAN_ID).ended;
    expect(lines(stdout).slice(-2)).toEqual([
      "open slice 12: received 3",
      `Why one does not finish: \`millrace harvest why ${PLAN_ID} 12\`.`,
    ]);
    expect(server.asked.at(-1)?.query).toEqual({ status: "READY", limit: "20" });
    server.plan = completeOf();
    expect((await server.cli("status", PLAN_ID).ended).stdout).not.toContain("open");
  });

  test.each([
    ["goes on", planOf(), 0],
    ["is complete", completeOf(), 0],
    ["failed", failedOf(), 1],
    ["is complete, but a window could not land", completeOf({ landings: [landingOf("1", { status: "FAILED" })] }), 1],
    ["was cancelled", completeOf({ status: "CANCELLED", landings: [] }), 8],
  ])("exits with the result of a plan that %s, also with --json", async (_, plan, exit) => {
    const server = await startPlanServer(plan);
    expect((await server.cli("status", PLAN_ID).ended).exit).toBe(exit);
    expect((await server.cli("status", PLAN_ID, "--json").ended).exit).toBe(exit);
  });

  test("asks for the plans that its flags name", async () => {
    const server = await startPlanServer();
    server.answers["GET /plans"] = [200, { items: [], next: null }];
    server.answers["GET /registry/sources/shop"] = [200, { source: "shop" }];
    const words = ["--source", "shop", "--status", "failed", "--limit", "5", "--after", PLAN_ID];
    expect((await server.cli("status", ...words).ended).stdout).toBe("There are no such plans.\n");
    expect(server.asked[0]?.query).toEqual({ source: "shop", status: "FAILED", limit: "5", after: PLAN_ID });
  });

  test("says where to look when a name is given instead of a plan, and when nobody answers", async () => {
    const server = await startPlanServer();
    expect(await server.cli("status", "shop", "--follow").ended).toEqual({
      exit: 4,
      stdout: "",
      stderr: "`shop` is not the id of a plan. See `millrace harvest status`.\n",
    });
    const away = await runCli(["harvest", "status", PLAN_ID, "--follow"], { MILLRACE_URL: "http://127.0.0.1:1" });
    expect(away).toMatchObject({ exit: 6, stdout: "" });
    expect(away.stderr).toMatch(/^No Millrace answers at /);
  });
});

test("tasks are those of a plan, or of all", async () => {
  const server = await startPlanServer();
  server.answers["GET /tasks"] = [200, { items: [], next: null }];
  server.answers[`GET /plans/${PLAN_ID}/tasks`] = [200, { items: [], next: null }];
  await server.cli("tasks", "--source", "shop", "--status", "queued").ended;
  await server.cli("tasks", "--plan", PLAN_ID).ended;
  expect(server.asked.map(({ path, query }) => [path, query])).toEqual([
    ["/tasks", { source: "shop", status: "QUEUED" }],
    ["/registry/sources/shop", {}], // It has no such tasks, or does not exist.
    [`/plans/${PLAN_ID}/tasks`, {}],
  ]);
});

describe("schedules", () => {
  test("are paused and resumed by their ids", async () => {
    const server = await startPlanServer();
    const schedule = { source: "shop", name: "hourly", paused: true, nextAt: null };
    server.answers["POST /schedules/3:pause"] = [200, schedule];
    server.answers["POST /schedules/3:resume"] = [200, { ...schedule, paused: false, nextAt: at(300) }];
    expect((await server.cli("schedules", "pause", "3").ended).stdout).toBe("shop hourly: paused.\n");
    expect((await server.cli("schedules", "resume", "3").ended).stdout).toBe(
      "shop hourly: on, next at 2026-08-22T10:05:00Z.\n",
    );
  });

  test.each([
    [["pause"], "The id of the schedule is missing. See `millrace harvest schedules`."],
    [["puase", "3"], "There is no action `puase`. Did you mean `pause`?"],
    [["drop", "3"], "There is no action `drop`. Actions: list, pause, resume."],
    [["list", "3"], "`3` is one argument too many."],
  ])("refuses %j", async (words, sentence) => {
    const server = await startPlanServer();
    expect(await server.cli("schedules", ...words).ended).toEqual({ exit: 2, stdout: "", stderr: `${sentence}\n` });
  });
});

describe("records", () => {
  const page = (first: number, count: number, next: string) => {
    const items = Array.from({ length: count }, (_, index) => `{"key":"${first + index}","data":{"n":1.0}}`);
    return [200, `{"items":[${items.join(",")}],"next":"${next}"}`] as const;
  };

  test("are printed to the last one, unchanged, page by page", async () => {
    const server = await startPlanServer();
    server.answers["GET /records"] = page(0, 1_000, "a");
    const records = server.cli("records", "--source", "shop", "--endpoint", "orders", "--after", "z");
    await until(() => server.asked.length > 1, "the second page");
    server.answers["GET /records"] = page(1_000, 2, "b");
    const { exit, stdout, stderr } = await records.ended;
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: "Go on with --after b\n" });
    expect(lines(stdout).at(-1)).toBe('{"key":"1001","data":{"n":1.0}}');
    expect(server.asked[0]?.query).toEqual({ source: "shop", endpoint: "orders", after: "z", size: "1000" });
    expect(server.asked[1]?.query["after"]).toBe("a");
  });

  test("with --json keep the position", async () => {
    const server = await startPlanServer();
    server.answers["GET /records"] = page(0, 1, "b");
    const { stdout, stderr } = await server.cli("records", "--source", "shop", "--json").ended;
    expect(stderr).toBe("");
    expect(stdout).toBe('{"items":[{"key":"0","data":{"n":1.0}}],"next":"b"}\n');
  });

  test("that do not exist are exit code 4", async () => {
    const server = await startPlanServer();
    server.answers["GET /records"] = page(0, 0, "0");
    expect(await server.cli("records", "--source", "shop", "--key", "x").ended).toEqual({
      exit: 4,
      stdout: "",
      stderr: "There is no record `x`.\n",
    });
    expect((await server.cli("records", "--source", "shop", "--key", "x", "--follow").ended).exit).toBe(2);
  });
});
