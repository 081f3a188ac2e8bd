/** The sources of the scenario: simulators of three real APIs, with a data set whose days differ in size. */
import { SIMULATORS, type Simulator } from "../simulators/index.ts";
import type { Days } from "./days.ts";

/** The shipped definitions, with the tables that they land in. */
export const SOURCES = {
  crossref: { label: "Crossref", table: "crossref_works", recordsPerDay: 120 },
  pubmed: { label: "PubMed", table: "pubmed_articles", recordsPerDay: 80 },
  arxiv: { label: "arXiv", table: "arxiv_records", recordsPerDay: 40 },
} as const;
export type SourceName = keyof typeof SOURCES;
export const SOURCE_NAMES = Object.keys(SOURCES) as SourceName[];

export interface Sources {
  get(source: SourceName): Simulator;
  /** `host:port` of each. */
  hosts: readonly string[];
  /** Puts a further record into a day that may have been harvested already. */
  addLate(source: SourceName, day: string): void;
  close(): Promise<void>;
}

/** The size of each day, as a share of `recordsPerDay`: a week with a weekend. */
const SHARES = [0.8, 1, 1.1, 1.2, 0.95, 0.5, 0.4] as const;
const MINUTE_MS = 60_000;

export async function startSources({ scenario, later }: Days): Promise<Sources> {
  const started = new Map<SourceName, Simulator>();
  for (const source of SOURCE_NAMES) {
    const simulator = await SIMULATORS[source]?.start({ days: [], recordsPerDay: 0 });
    if (!simulator) throw new Error(`there is no simulator of ${source}`);
    started.set(source, simulator);
    [...scenario, ...later].forEach((day, index) => {
      const count = Math.round(SOURCES[source].recordsPerDay * (SHARES[index % SHARES.length] ?? 1));
      for (let number = 0; number < count; number += 1) simulator.add({ updated: timeOn(day, number) });
    });
  }
  function get(source: SourceName): Simulator {
    const simulator = started.get(source);
    if (!simulator) throw new Error(`${source} is not started`);
    return simulator;
  }
  let late = 0;
  return {
    get,
    hosts: [...started.values()].map(({ origin }) => new URL(origin).host),
    addLate(source, day) {
      late += 1;
      get(source).add({ updated: timeOn(day, late) });
    },
    async close() {
      for (const simulator of started.values()) await simulator.close();
    },
  };
}

/** In the middle of the day, so that it is the same day in all zones that a source may use. */
function timeOn(day: string, minute: number): string {
  return new Date(Date.parse(`${day}T09:00:00Z`) + (minute % 300) * MINUTE_MS).toISOString();
}
