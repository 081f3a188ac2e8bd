/** Whole harvests of simulated sources: what is stored is what the simulator has, without a gap and without a double. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Api } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { startMillrace } from "../../test/millrace.ts";
import { until } from "../../test/until.ts";
import { type Simulator, type SimulatorOptions, startOpenalex } from "../simulators/index.ts";
import {
  applySource,
  endOf,
  expectedOf,
  plan,
  type SourceName,
  startSimulatorOf,
  storedOf,
  windowOf,
} from "./harvest.fixture.ts";

const database = useDatabase();
const DAYS = ["2026-08-01", "2026-08-02", "2026-08-03"];
const OPENALEX_KEY = "test-key-0001";

beforeAll(() => {
  process.env["OPENALEX_API_KEY"] = OPENALEX_KEY;
});
afterAll(() => {
  delete process.env["OPENALEX_API_KEY"];
});

async function simulatorOf(kind: SourceName, options: SimulatorOptions): Promise<Simulator> {
  const simulator = await startSimulatorOf(kind, { unlimited: true, days: DAYS, faultDelayMs: 20, ...options });
  onTestFinished(() => simulator.close());
  return simulator;
}

async function millraceFor(simulator: Simulator, roles = "api,scheduler,worker"): Promise<Api> {
  const { app, api } = await startMillrace(database, {
    env: {
      MILLRACE_ROLES: roles,
      MILLRACE_HARVEST_ALLOW_PRIVATE: new URL(simulator.origin).host,
    },
  });
  onTestFinished(() => app.stop());
  return api;
}

/** Some of what goes wrong; harvest-faults.test.ts has all of it. */
const FAULTS = {
  crossref: { "short-page": 0.2, "order-shuffle": 0.5, "duplicate-across-pages": 0.2 },
  pubmed: { "missing-pmid": { next: 1 }, "duplicate-across-pages": 0.2 },
  arxiv: { "token-expiry": { next: 1 }, "duplicate-across-pages": 0.2 },
  europepmc: { "token-on-last-page": 0.7, "scalar-result": 1, "duplicate-across-pages": 0.2 },
  openalex: { "short-page": 0.2, "token-on-last-page": 0.7, "duplicate-across-pages": 0.2 },
} as const;
const TRANSPORT_FAULTS = { "http-500": 0.03, "truncated-body": 0.03, "answer-lost": 0.03, gzip: 0.3 };

describe.each(["crossref", "pubmed", "arxiv", "europepmc", "openalex"] as const)("a harvest of %s", (kind) => {
  test("has exactly the records of the source, and nothing changes when it comes again", async () => {
    const simulator = await simulatorOf(kind, { recordsPerDay: 250 });
    const api = await millraceFor(simulator);
    const source = await applySource(api, kind, simulator, { pagination: { pageSize: 100 } });
    const first = await endOf(api, (await plan(api, { source, window: windowOf(simulator) })).planId);
    expect(first).toMatchObject({
      status: "COMPLETE",
      reconciliation: { received: 750, inserted: 750, updated: 0, unchanged: 0, gaps: 0, quarantined: 0 },
    });
    expect(await storedOf(api, kind, source, simulator.records().length)).toEqual(expectedOf(simulator));
    const second = await endOf(api, (await plan(api, { source, window: windowOf(simulator) })).planId);
    expect(second).toMatchObject({
      status: "COMPLETE",
      reconciliation: { received: 750, inserted: 0, updated: 0, unchanged: 750 },
    });
  });

  test("is the same as a backfill, which brings exactly the records of the source", async () => {
    const simulator = await simulatorOf(kind, { recordsPerDay: 150, faults: { ...TRANSPORT_FAULTS, ...FAULTS[kind] } });
    const api = await millraceFor(simulator);
    const source = await applySource(api, kind, simulator, { pagination: { pageSize: 40 } });
    const window = windowOf(simulator);
    const ended = await endOf(api, (await plan(api, { source, operation: "BACKFILL", window })).planId);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 450, gaps: 0 } });
    expect(await storedOf(api, kind, source, simulator.records().length)).toEqual(expectedOf(simulator));
    const { body } = await api.get<{ items: object[] }>(`/api/v1/harvest/cursors?source=${source}`);
    expect(body.items).toMatchObject([{ operation: "BACKFILL", value: `${window.from}T00:00:00.000Z` }]);
  });
});

test("two executors together keep to the rate that the definition declares, and the source refuses nothing", async () => {
  const rate = { requests: 3, concurrency: 2 };
  const options = { days: DAYS.slice(0, 2), recordsPerDay: 40, latencyMs: 30, rate };
  const simulator = await startSimulatorOf("europepmc", options);
  onTestFinished(() => simulator.close());
  const [api] = await Promise.all([millraceFor(simulator), millraceFor(simulator, "worker")]);
  // Two a second, one after the other; what the source allows is one more.
  const source = await applySource(api, "europepmc", simulator, { rateLimit: {}, pagination: { pageSize: 10 } });
  const ended = await endOf(api, (await plan(api, { source, window: windowOf(simulator) })).planId);
  expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 80, gaps: 0 } });
  const [traffic, ...others] = Object.values(simulator.traffic.summary().keys);
  expect(others).toEqual([]);
  expect(traffic).toMatchObject({ requests: 8, refused: 0 });
  expect(traffic?.worstSecond).toBeLessThanOrEqual(rate.requests);
  expect(traffic?.concurrencyMax).toBeLessThanOrEqual(rate.concurrency);
});

test("a harvest of OpenAlex stops before the money of the day is spent, and nothing is refused", async () => {
  const simulator = await startOpenalex({ days: DAYS, recordsPerDay: 150, budgetsUsd: { [OPENALEX_KEY]: 0.001 } });
  onTestFinished(() => simulator.close());
  const api = await millraceFor(simulator);
  const source = await applySource(api, "openalex", simulator, {
    pagination: { pageSize: 40 },
    rateLimit: { keys: ["openalex-money"], refillRatePerSec: 90, burstCapacity: 1, concurrency: 1 },
  });
  const { planId } = await plan(api, { source, window: windowOf(simulator) });
  const waiting = await until(async () => {
    const { body } = await api.get<{ waits?: { reason: string }[] }>(`/api/v1/harvest/plans/${planId}`);
    return body.waits?.find(({ reason }) => reason.includes("openalex-money"));
  }, "a task that waits for money");
  expect(waiting.reason).toBe("the rest of the quota of openalex-money is held back");
  // A list costs $0.0001, and a tenth of the budget is held back. A permit that is used too late is paid as well.
  const { answers } = simulator.traffic.summary();
  expect(Object.keys(answers)).toEqual(["200"]);
  expect(answers["200"]).toBeGreaterThan(6);
  expect(answers["200"]).toBeLessThanOrEqual(9);
});
