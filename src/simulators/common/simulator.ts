/** A running simulator: a data set, a source that serves it, its faults and what arrived, behind one HTTP server. */

import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import { DAY_MS, SECOND_MS } from "../../kernel/time/units.ts";
import { createControl } from "./control.ts";
import { abstractBytesOf, type DataSet, generate } from "./data-set.ts";
import { createFaults, type FaultName, type Faults, type FaultTable } from "./faults.ts";
import { createMutations, type Mutations } from "./mutations.ts";
import { type Random, randomFrom } from "./random.ts";
import {
  createRecordStore,
  dayOf,
  type ExpectedRecord,
  type RecordStore,
  type SimulatedRecord,
  type Window,
} from "./records.ts";
import { startServer } from "./server.ts";
import type { Source } from "./source.ts";
import { createTraffic, type Traffic } from "./traffic.ts";

export interface SimulatorOptions extends Partial<DataSet> {
  /** 0, the default, takes a free one. */
  port?: number;
  /** The same seed gives the same records and the same faults. */
  seed?: number;
  latencyMs?: number;
  /** Instead of the limits of the real service. */
  rate?: { requests: number; intervalMs?: number; concurrency?: number };
  /** No limits, and no headers that state any. */
  unlimited?: boolean;
  faults?: FaultTable;
  /** Instead of the seconds that the real service says in Retry-After. */
  retryAfterSeconds?: number;
  /** How long the faults `latency` and `slow-drip` take. */
  faultDelayMs?: number;
  /** Records are written when they are first asked for: quicker for a large data set that is mostly counted. */
  writesLate?: boolean;
  /** Off: never compresses, also for a client that accepts it. */
  compress?: boolean;
  clock?: Clock;
  /** The clock of arrivals, in milliseconds. */
  monotonicMs?: () => number;
}

export interface Simulator extends Pick<Mutations, "add" | "update" | "remove"> {
  /** What the base URL of the real service is replaced by. */
  baseUrl: string;
  /** Without the path of `baseUrl`; control is below `/_simulator/`. */
  origin: string;
  /** The days of its data set. */
  days: readonly string[];
  /** What a correct harvest of the window has, in the order of time; without a window everything. */
  records(window?: Window): ExpectedRecord[];
  faults: Faults;
  traffic: Traffic;
  close(): Promise<void>;
}

export interface SourceContext {
  store: RecordStore;
  random: Random;
  clock: Clock;
}

/** What one simulated API adds to the common parts. */
export interface SourceKind {
  /** The path of the real service's base URL. */
  basePath: string;
  faults: readonly FaultName[];
  keepsDeleted: boolean;
  idOf(ordinal: number, created: number): string;
  write(record: Omit<SimulatedRecord, "text">): string;
  open(context: SourceContext): Source;
}

const SEED_DEFAULT = 1;
const DAYS_DEFAULT = 7;
const RECORDS_PER_DAY_DEFAULT = 100;
const FAULT_DELAY_MS_DEFAULT = 500;

/** The faults of the transport, which every source has. */
export const TRANSPORT_FAULTS = [
  "http-429",
  "http-500",
  "http-500-empty",
  "http-503",
  "truncated-body",
  "reset-after-headers",
  "reset-before-headers",
  "answer-lost",
  "slow-drip",
  "gzip",
  "latency",
  "clock-skew",
  "retry-after-on-200",
  "wrong-content-type",
  "late-arrival",
  "update-during-paging",
] as const satisfies readonly FaultName[];

export async function startSimulator(kind: SourceKind, options: SimulatorOptions): Promise<Simulator> {
  const { clock = systemClock, seed = SEED_DEFAULT, rate } = options;
  const days = options.days ?? lastDays(DAYS_DEFAULT, clock);
  const random = randomFrom(seed + 1); // The data set draws from the seed itself: it is the same with and without faults.
  const store = createRecordStore({ ...kind, writesLate: options.writesLate });
  const abstractBytes = abstractBytesOf(options.sizeBytes, kind.write);
  const { recordsPerDay = RECORDS_PER_DAY_DEFAULT, publishedDays } = options;
  const dataSet = { days, recordsPerDay, publishedDays };
  generate(dataSet, { seed, idOf: kind.idOf, add: store.add, abstractBytes });

  const faults = createFaults({ names: kind.faults, random });
  faults.set(options.faults ?? {});
  const traffic = createTraffic();
  const mutations = createMutations({ store, idOf: kind.idOf, random, clock, abstractBytes });
  const server = await startServer({
    port: options.port ?? 0,
    source: kind.open({ store, random, clock }),
    faults,
    traffic,
    afterAnswer(request) {
      if (request.strikes("late-arrival")) mutations.lateArrival();
      if (request.strikes("update-during-paging")) mutations.updateSome();
    },
    control: createControl({ faults, traffic, store, mutations }),
    clock,
    monotonicMs: options.monotonicMs ?? (() => performance.now()),
    limits: { halved: false },
    rate: options.unlimited ? "none" : rate && { intervalMs: SECOND_MS, ...rate },
    latencyMs: options.latencyMs ?? 0,
    retryAfterSeconds: options.retryAfterSeconds,
    compress: options.compress ?? true,
    faultDelayMs: options.faultDelayMs ?? FAULT_DELAY_MS_DEFAULT,
  });
  return {
    origin: server.origin,
    baseUrl: server.origin + kind.basePath,
    days,
    records: store.expected,
    add: mutations.add,
    update: mutations.update,
    remove: mutations.remove,
    faults,
    traffic,
    close: server.close,
  };
}

/** The last whole days before today, in UTC. */
export function lastDays(count: number, clock: Clock): string[] {
  const today = clock.now() - (clock.now() % DAY_MS);
  return Array.from({ length: count }, (_, index) => dayOf(today - (count - index) * DAY_MS));
}
