import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { callTogether, startCaller } from "./callers.fixture.ts";
import type { Job } from "./child.fixture.ts";
import { type CountingService, startCountingService } from "./counting-service.fixture.ts";
import { openGates, type TestGates } from "./gates.fixture.ts";

const database = useDatabase();
const PROCESSES = 4;
const LOOPS = 6;
const FOR_MS = process.env["MILLRACE_TEST_LONG"] ? 30_000 : 4_000;

let gates: TestGates;
let service: CountingService;
beforeAll(async () => {
  gates = await openGates(database.db);
  service = await startCountingService();
});
afterAll(() => service.stop());

async function start(job: Omit<Job, "connection">) {
  const caller = await startCaller({ connection: database.connection, ...job });
  onTestFinished(caller.kill);
  return caller;
}

test.each([50, 10, 3])(
  "four processes on a gate of %i a second never exceed it, by grant and as the service counts",
  async (ratePerSec) => {
    const key = `shared-${ratePerSec}`;
    await gates.declare(database.db, [{ key, ratePerSec }]);
    const calls = { serviceUrl: service.url, loops: LOOPS, forMs: FOR_MS };
    const callers = await Promise.all(Array.from({ length: PROCESSES }, () => start({ key, calls })));
    const { worstByGrant, worstAsCounted, share, givenUp } = await callTogether(callers, service, ratePerSec);
    console.log(
      `${ratePerSec}/s: worst second ${worstByGrant} by grant, ${worstAsCounted} as counted; ` +
        `${(share * 100).toFixed(1)}% of the limit, ${givenUp} permits given up, ` +
        `longest pause of the service ${service.longestPauseMs().toFixed(0)} ms`,
    );
    expect(worstByGrant).toBeLessThanOrEqual(ratePerSec);
    expect(worstAsCounted).toBeLessThanOrEqual(ratePerSec);
    expect(share).toBeGreaterThan(0.2); // On a busy machine permits are given up.
  },
);

test("the slot of a process that was killed is free when its session is over", async () => {
  const key = "killed";
  await gates.declare(database.db, [{ key, ratePerSec: 100, concurrency: 1 }]);
  const holder = await start({ key });
  expect(await holder.go()).toBe("permit");
  const request = { task: "heir", gates: [{ key }] };
  expect(await gates.take(request, { maxWaitMs: 10 })).toMatchObject({ kind: "rejected", reason: "SLOTS" });
  await holder.kill();
  expect(await gates.take(request, { maxWaitMs: 30_000 })).toMatchObject({ kind: "permit" });
});
