/**
 * Whole harvests under every fault of the simulators, in random combinations: what is stored is what the simulator has, without a
 * gap and without a double.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Api } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { startMillrace } from "../../test/millrace.ts";
import { mulberry32 } from "../kernel/mulberry32.ts";
import { SIMULATORS, type Simulator, type SimulatorOptions } from "../simulators/index.ts";
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
const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
/** In pairs: the one has the faults that the other has not. */
const SEEDS = Array.from({ length: LONG ? 20 : 2 }, (_, seed) => seed);
const DAYS = ["2026-08-01", "2026-08-02", "2026-08-03"];
/** One more than four pages, so that a list of one is read too. */
const PER_DAY = 161;
const PAGE = 40;

type FaultTable = NonNullable<SimulatorOptions["faults"]>;
type Fault = keyof FaultTable;

/** Those that no harvest by the shipped definitions meets. */
const NOT_MET: Partial<Record<SourceName, readonly Fault[]>> = {
  pubmed: ["token-expiry"], // Of sessions, which the definition does not use.
  openalex: ["merged-work"], // Of single works, which only updates ask for (simulated-updates.test.ts).
};
/** Few answers are such that they can strike. */
const RARE: readonly Fault[] = [
  "order-shuffle",
  "token-on-last-page",
  "empty-result-list",
  "scalar-result",
  "no-records-at-end",
];
/** The records are others afterwards, so a second harvest has to catch up. */
const CHANGING: readonly Fault[] = ["late-arrival", "update-during-paging"];

beforeAll(() => {
  process.env["OPENALEX_API_KEY"] = "test-key-0001";
});
afterAll(() => {
  delete process.env["OPENALEX_API_KEY"];
});

function faultsOf(kind: SourceName): Fault[] {
  return (SIMULATORS[kind]?.faults ?? []).filter((fault) => !NOT_MET[kind]?.includes(fault));
}

/** Half of them. Each strikes once or twice, early enough that a harvest meets it. */
function tableOf(kind: SourceName, seed: number): FaultTable {
  const dealt = mulberry32(1 + Math.floor(seed / 2));
  const random = mulberry32(1_000 + seed);
  const all = faultsOf(kind);
  const shuffled = all.map((fault) => ({ fault, place: dealt() })).sort((a, b) => a.place - b.place);
  const chosen = new Set(shuffled.filter((_, place) => place % 2 === seed % 2).map(({ fault }) => fault));
  if (chosen.has("empty-result-list")) chosen.add("token-on-last-page");
  const settings = [...chosen].map((fault) => {
    if (RARE.includes(fault)) return [fault, 1] as const;
    const next = CHANGING.includes(fault) ? 2 : 1;
    return [fault, { next, after: Math.floor(random() * 10) }] as const;
  });
  return Object.fromEntries(settings);
}

/** One that states limits, so that the fault that changes them is seen. */
function limitsOf(kind: SourceName): SimulatorOptions {
  return faultsOf(kind).includes("header-change")
    ? { rate: { requests: 2_000, concurrency: 100 } }
    : { unlimited: true };
}

async function simulatorOf(kind: SourceName, seed: number): Promise<Simulator> {
  const options = {
    ...limitsOf(kind),
    days: DAYS,
    recordsPerDay: PER_DAY,
    seed,
    faultDelayMs: 20,
    retryAfterSeconds: 0.05,
    pageSize: PAGE,
    completeListSize: true,
    faults: tableOf(kind, seed),
  };
  const simulator = await startSimulatorOf(kind, options);
  onTestFinished(() => simulator.close());
  return simulator;
}

/** What a definition has to say beside what is shipped. */
const CHANGES: Partial<Record<SourceName, Record<string, unknown>>> = {
  pubmed: { batching: { idBatchSize: PAGE } },
  // Not every server of OAI-PMH announces a total; arXiv's does not.
  arxiv: { response: { totalPath: "$['OAI-PMH'].ListRecords[0].resumptionToken[0]['@completeListSize']" } },
};

async function harvest(api: Api, kind: SourceName, simulator: Simulator, seed: number): Promise<void> {
  const source = await applySource(api, kind, simulator, { pagination: { pageSize: PAGE }, ...CHANGES[kind] });
  const harvested = async () => endOf(api, (await plan(api, { source, window: windowOf(simulator) })).planId);
  const first = await harvested();
  const gaps = JSON.stringify(first["gapWindows"]);
  expect(first, `seed ${seed}: ${gaps}`).toMatchObject({
    status: "COMPLETE",
    reconciliation: { gaps: 0, quarantined: 0 },
  });
  const changes = CHANGING.filter((fault) => Object.hasOwn(simulator.faults.table(), fault));
  if (changes.length > 0) {
    simulator.faults.set(Object.fromEntries(changes.map((fault) => [fault, 0])));
    const received = simulator.records().length;
    expect(await harvested(), `seed ${seed}`).toMatchObject({
      status: "COMPLETE",
      reconciliation: { received, gaps: 0 },
    });
  } else {
    expect(first, `seed ${seed}`).toMatchObject({ reconciliation: { received: DAYS.length * PER_DAY } });
  }
  const stored = await storedOf(api, kind, source, simulator.records().length);
  expect(stored, `seed ${seed}`).toEqual(expectedOf(simulator));
}

describe.each(["crossref", "pubmed", "arxiv", "europepmc", "openalex"] as const)("%s", (kind) => {
  test(`is harvested exactly under all its faults, with ${SEEDS.length} seeds`, {
    timeout: SEEDS.length * 60_000,
  }, async () => {
    const simulators = await Promise.all(SEEDS.map((seed) => simulatorOf(kind, seed)));
    const { app, api } = await startMillrace(database, {
      env: {
        MILLRACE_ROLES: "api,scheduler,worker",
        MILLRACE_HARVEST_ALLOW_PRIVATE: simulators.map(({ origin }) => new URL(origin).host).join(","),
      },
    });
    onTestFinished(() => app.stop());
    for (let seed = 0; seed < SEEDS.length; seed += 2) {
      const pair = simulators.slice(seed, seed + 2);
      await Promise.all(pair.map((simulator, index) => harvest(api, kind, simulator, seed + index)));
      const tables = pair.map(({ faults }) => Object.entries(faults.table()));
      const idle = tables.flatMap((table) => table.filter(([, { struck }]) => struck === 0).map(([fault]) => fault));
      expect(idle, `did not strike with seed ${seed} or ${seed + 1}`).toEqual([]);
      expect(new Set(tables.flatMap((table) => table.map(([fault]) => fault)))).toEqual(new Set(faultsOf(kind)));
    }
  });
});
