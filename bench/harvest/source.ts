/** The source of the benchmarks: 100,000 works of 1 KB in 16 days, without limits and without compression, and its definition. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { BENCH, type SimulatorOptions } from "../../src/simulators/index.ts";

/** Twice as many as run at once, so that the last of them do not run alone. */
export const DAYS = Array.from({ length: 16 }, (_, index) => `2026-08-${String(index + 1).padStart(2, "0")}`);
export const RECORDS = 100_000;
const DATA_SET: SimulatorOptions = { ...BENCH, days: DAYS, recordsPerDay: RECORDS / DAYS.length, compress: false };

export interface BenchSource {
  baseUrl: string;
  stop(): Promise<void>;
}

export async function startSource(options: Pick<SimulatorOptions, "latencyMs"> = {}): Promise<BenchSource> {
  const script = fileURLToPath(new URL("./simulator-process.ts", import.meta.url));
  const child = fork(script, [JSON.stringify({ ...DATA_SET, ...options })], { stdio: "inherit" });
  const [baseUrl] = (await once(child, "message")) as [string];
  return {
    baseUrl,
    async stop() {
      const gone = once(child, "exit");
      child.disconnect();
      await gone;
    },
  };
}

export interface Walk {
  pageSize: number;
  /** Each day on its own; without it, one list of all works. */
  byDay: boolean;
}

/** The same list, page by page: a cursor that the service moves. */
export function definitionOf(source: string, baseUrl: string, { pageSize, byDay }: Walk, concurrency: number) {
  return {
    source,
    name: source,
    baseUrl,
    endpoints: {
      works: {
        path: "/works",
        default: true,
        ...(byDay ? {} : { enumerator: "ScanByCursor" }),
        http: {
          compression: false,
          query: {
            rows: "${page.size}",
            cursor: "${page.token}",
            ...(byDay ? { filter: "from-update-date:${window.from},until-update-date:${window.until}" } : {}),
          },
        },
        pagination: {
          type: "TOKEN",
          initial: "*",
          tokenClass: "SINGLE_USE",
          nextTokenPath: "$.message['next-cursor']",
          pageSize,
          pageSizeMax: 1_000,
        },
        ...(byDay ? { window: WINDOW } : {}),
        response: {
          itemsPath: "$.message.items",
          idPath: "$.DOI",
          updatedAtPath: "$.deposited['date-time']",
          totalPath: "$.message['total-results']",
        },
        rateLimit: { keys: [source], refillRatePerSec: 10_000, burstCapacity: 10_000 },
        budget: { concurrency },
        bodies: "all",
      },
    },
  };
}

const WINDOW = {
  supportsUpdatedSince: true,
  watermarkKey: "deposited_at",
  granularity: "P1D",
  format: "yyyy-MM-dd",
  align: "day",
  minWindow: "P1D",
  maxWindow: "P1D",
};
