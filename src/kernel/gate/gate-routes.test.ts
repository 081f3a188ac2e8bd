import { beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { gateRoutes } from "./gate-routes.ts";
import { openGates, type TestGates } from "./gates.fixture.ts";

const database = useDatabase();
let http: TestHttp;
let gates: TestGates;

beforeAll(async () => {
  const { db } = database;
  gates = await openGates(db);
  http = await startHttp({ db, routes: (routes) => gateRoutes(routes, { db, gates }) });
  return () => http.stop();
});

const put = (key: string, body: unknown, query = "") => http.send(`/gates/${key}${query}`, { method: "PUT", body });
const remove = (key: string) => http.send(`/gates/${key}`, { method: "DELETE" });

test("a gate is declared, shown with its state, changed and withdrawn", async () => {
  const quotas = [{ unit: "requests", windowSec: 86_400, limit: 1_000 }];
  const declared = await put("ip:ncbi", { ratePerSec: 3, concurrency: 2, quotas });
  expect(declared).toMatchObject({
    status: 200,
    body: {
      key: "ip:ncbi",
      declared: true,
      ratePerSec: 3,
      burst: 1,
      concurrency: 2,
      currentRatePerSec: 3,
      slotsTaken: 0,
    },
  });
  await gates.acquire({ gates: [{ key: "ip:ncbi" }], deadlineMs: 0 });
  await gates.feedback("ip:ncbi", { kind: "throttled", retryAfterMs: 60_000 });
  const [shown] = (await http.send("/gates")).body["items"] as [Record<string, unknown>];
  expect(shown).toMatchObject({
    key: "ip:ncbi",
    currentRatePerSec: 1.5,
    cooldownUntil: expect.stringMatching(/^\d{4}-.*Z$/),
    lastCutAt: expect.stringMatching(/^\d{4}-.*Z$/),
    slotsTaken: 1,
    quotas: [{ unit: "requests", used: 1, remaining: 999, resetAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) }],
  });
  expect((await put("ip:ncbi", { ratePerSec: 10 })).body).toMatchObject({
    ratePerSec: 10,
    concurrency: null,
    quotas: [],
  });
  expect((await remove("ip:ncbi")).body).toMatchObject({ declared: false, ratePerSec: 1 });
  expect(await remove("ip:ncbi")).toMatchObject({ status: 404, body: { code: "GATE_NOT_FOUND" } });
});

test("a gate that its service has closed is opened by hand", async () => {
  await put("misled", { ratePerSec: 8 });
  await gates.feedback("misled", { kind: "throttled", retryAfterMs: 80_000_000 });
  await gates.feedback("misled", { kind: "headers", ratePerSec: 0.01, concurrency: 1 });
  const opened = await http.send("/gates/misled:open", { method: "POST" });
  expect(opened).toMatchObject({
    status: 200,
    body: { currentRatePerSec: 8, cooldownUntil: null, headerRatePerSec: null, headerConcurrency: null },
  });
  const taken = await gates.take({ task: "t", gates: [{ key: "misled" }] }, { maxWaitMs: 30_000 });
  expect(taken.kind).toBe("permit");
  expect(await http.send("/gates/unknown:open", { method: "POST" })).toMatchObject({ status: 404 });
});

test("declaring and withdrawing is audited", async () => {
  await put("audited", { ratePerSec: 5 });
  await put("audited", { ratePerSec: 7, burst: 2 });
  await remove("audited");
  const rows = await database.query(
    "select action, details from kernel.audit_log where target = 'audited' order by id",
  );
  expect(rows).toMatchObject([
    { action: "gate.declare", details: { ratePerSec: 5 } },
    {
      action: "gate.declare",
      details: {
        changes: [
          { field: "ratePerSec", from: 5, to: 7 },
          { field: "burst", from: 1, to: 2 },
        ],
      },
    },
    { action: "gate.undeclare" },
  ]);
});

test("a dry run answers the same and changes nothing", async () => {
  expect(await put("tried", { ratePerSec: 5 }, "?dryRun=true")).toMatchObject({ status: 200, body: { ratePerSec: 5 } });
  expect(await gates.describe(["tried"])).toEqual([]);
});

test.each([
  [{}, "ratePerSec"],
  [{ ratePerSec: 0 }, "ratePerSec"],
  [{ ratePerSec: 5, burst: 6 }, "burst 6 is more than 5"],
  [{ ratePerSec: 5, concurrency: 0 }, "concurrency"],
  [{ ratePerSec: 5, rate: 5 }, "rate"],
  [{ ratePerSec: 5, cutFactor: 1 }, "cutFactor"],
  [{ ratePerSec: 5, quotas: [{ unit: "apples", windowSec: 60, limit: 1 }] }, "unit"],
  [{ ratePerSec: 5, quotas: Array.from({ length: 2 }, () => ({ unit: "credits", windowSec: 60, limit: 1 })) }, "twice"],
])("%j is refused with a sentence about %s", async (body, about) => {
  const answer = await put("refused", body);
  expect(answer.status).toBe(400);
  expect(answer.body["error"]).toContain(about);
});
