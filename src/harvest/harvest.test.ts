/** Whole harvests of simulated sources: what is stored is what the simulator has, without a gap and without a double. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Api } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { startMillrace } from "../../test/millrace.ts";
import { until } from "../../test/until.ts";
import {
  type Simulator,
  type SimulatorOptions,
  startArxiv,
  startCrossref,
  startEuropepmc,
  startOpenalex,
  startPubmed,
} from "../simulators/index.ts";
import { applySource, endOf, identityOf, plan, recordsOf, type SourceName, windowOf } from "./harvest.fixture.ts";

const database = useDatabase();
const STARTS = {
  crossref: startCrossref,
  pubmed: startPubmed,
  arxiv: startArxiv,
  europepmc: startEuropepmc,
  openalex: startOpenalex,
} as const;
const SEEDS = process.env["MILLRACE_TEST_LONG"] ? Array.from({ length: 20 }, (_, seed) => seed) : [1];
const DAYS = ["2026-08-01", "2026-08-02", "2026-08-03"];
/** One more than four pages, so that a list of one is read too. */
const PER_DAY = 161;
const OPENALEX_KEY = "test-key-0001";

beforeAll(() => {
  process.env["OPENALEX_API_KEY"] = OPENALEX_KEY;
});
afterAll(() => {
  delete process.env["OPENALEX_API_KEY"];
});

async function simulatorOf(kind: SourceName, options: SimulatorOptions): Promise<Simulator> {
  const pageSize = 40; // arXiv decides itself how long a page is.
  const simulator = await STARTS[kind]({ unlimited: true, days: DAYS, faultDelayMs: 20, pageSize, ...options });
  onTestFinished(() => simulator.close());
  return simulator;
}

async function millraceFor(simulator: Simulator): Promise<Api> {
  const { app, api } = await startMillrace(database, {
    env: {
      MILLRACE_ROLES: "api,scheduler,worker",
      MILLRACE_HARVEST_ALLOW_PRIVATE: new URL(simulator.origin).host,
    },
  });
  onTestFinished(() => app.stop());
  return api;
}

async function stored(api: Api, kind: SourceName, source: string, count: number) {
  return (await recordsOf(api, source, count)).map((record) => identityOf(kind, record)).sort(byId);
}

function expected(simulator: Simulator) {
  return simulator
    .records()
    .map(({ id, content, deleted }) => ({ id, content: deleted ? "undefined" : content, deleted }))
    .sort(byId);
}

function byId(one: { id: string }, other: { id: string }): number {
  return one.id < other.id ? -1 : 1;
}

/** What goes wrong on the way, and what sources do to their lists. Each is seen to strike. */
const FAULTS = {
  crossref: {
    "http-429": { next: 1 },
    "short-page": 0.2,
    "order-shuffle": 0.5,
    "token-expiry": { next: 2 },
    "duplicate-across-pages": 0.2,
  },
  pubmed: {
    "http-429": { next: 1 },
    "rate-limit-body-200": { next: 1 },
    "timeout-400": { next: 2 },
    "missing-pmid": { next: 2, path: "efetch" },
    "duplicate-across-pages": 0.2,
  },
  arxiv: { "http-503": { next: 1 }, "token-expiry": { next: 2 }, "duplicate-across-pages": 0.2 },
  europepmc: {
    "http-429": { next: 1 },
    "bare-version": { next: 2 },
    "token-on-last-page": 0.7,
    "empty-result-list": 0.5,
    "scalar-result": 1,
    "duplicate-across-pages": 0.2,
  },
  openalex: {
    "http-429": { next: 1 },
    "short-page": 0.2,
    "token-on-last-page": 0.7,
    "duplicate-across-pages": 0.2,
  },
} as const;
const TRANSPORT_FAULTS = {
  "http-500": 0.03,
  "truncated-body": 0.03,
  "reset-after-headers": 0.03,
  "reset-before-headers": 0.03,
  "answer-lost": 0.03,
  "clock-skew": 0.2,
  gzip: 0.3,
};

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
    expect(await stored(api, kind, source, simulator.records().length)).toEqual(expected(simulator));
    const second = await endOf(api, (await plan(api, { source, window: windowOf(simulator) })).planId);
    expect(second).toMatchObject({
      status: "COMPLETE",
      reconciliation: { received: 750, inserted: 0, updated: 0, unchanged: 750 },
    });
  });

  test.each(SEEDS)("is exact with every fault of the source and of the way to it (seed %i)", async (seed) => {
    const simulator = await simulatorOf(kind, {
      recordsPerDay: PER_DAY,
      seed,
      faults: { ...TRANSPORT_FAULTS, ...FAULTS[kind] },
    });
    const api = await millraceFor(simulator);
    const source = await applySource(api, kind, simulator, { pagination: { pageSize: 40 } });
    const ended = await endOf(api, (await plan(api, { source, window: windowOf(simulator) })).planId);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: DAYS.length * PER_DAY, gaps: 0 } });
    expect(await stored(api, kind, source, simulator.records().length)).toEqual(expected(simulator));
    const struck = Object.entries(simulator.faults.table()).filter(([, fault]) => fault.struck > 0);
    expect(struck.length).toBeGreaterThan(5);
  });

  test("is the same as a backfill, which brings exactly the records of the source", async () => {
    const simulator = await simulatorOf(kind, { recordsPerDay: 150, faults: { ...TRANSPORT_FAULTS, ...FAULTS[kind] } });
    const api = await millraceFor(simulator);
    const source = await applySource(api, kind, simulator, { pagination: { pageSize: 40 } });
    const window = windowOf(simulator);
    const ended = await endOf(api, (await plan(api, { source, operation: "BACKFILL", window })).planId);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 450, gaps: 0 } });
    expect(await stored(api, kind, source, simulator.records().length)).toEqual(expected(simulator));
    const { body } = await api.get<{ items: object[] }>(`/api/v1/harvest/cursors?source=${source}`);
    expect(body.items).toMatchObject([{ operation: "BACKFILL", value: `${window.from}T00:00:00.000Z` }]);
  });

  test("catches up with late arrivals and with records that changed while it read", async () => {
    const simulator = await simulatorOf(kind, {
      recordsPerDay: 150,
      faults: { "late-arrival": 0.3, "update-during-paging": 0.3 },
    });
    const api = await millraceFor(simulator);
    const source = await applySource(api, kind, simulator, { pagination: { pageSize: 40 } });
    const window = windowOf(simulator);
    await endOf(api, (await plan(api, { source, window })).planId);
    simulator.faults.clear();
    const today = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    const ended = await endOf(api, (await plan(api, { source, window })).planId);
    expect(ended.status).toBe("COMPLETE");
    // What has changed since then belongs to a later window.
    const inWindow = simulator
      .records({ ...window, to: today })
      .filter(({ updated }) => updated.slice(0, 10) < window.to);
    const records = await stored(api, kind, source, inWindow.length);
    const known = new Map(records.map((record) => [record.id, record]));
    for (const record of inWindow) {
      expect(known.get(record.id)?.content).toBe(record.deleted ? "undefined" : record.content);
    }
  });
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
