/**
 * Simulators of the source APIs, for tests, benchmarks, the demo and `millrace simulate`: faithful copies on this machine, with their
 * limits and faults, and with a list of their own of what a correct harvest has.
 */
import { ARXIV_FAULTS, startArxiv } from "./arxiv/arxiv.ts";
import type { FaultName } from "./common/faults.ts";
import type { Simulator, SimulatorOptions } from "./common/simulator.ts";
import { CROSSREF_FAULTS, startCrossref } from "./crossref/crossref.ts";
import { EUROPEPMC_FAULTS, startEuropepmc } from "./europepmc/europepmc.ts";
import { OPENALEX_FAULTS, startOpenalex } from "./openalex/openalex.ts";
import { PUBMED_FAULTS, startPubmed } from "./pubmed/pubmed.ts";

export { FAULTS } from "./common/faults.ts";
export { lastDays, type Simulator, type SimulatorOptions } from "./common/simulator.ts";
export { startArxiv, startCrossref, startEuropepmc, startOpenalex, startPubmed };

export interface SimulatorKind {
  start(options: SimulatorOptions): Promise<Simulator>;
  faults: readonly FaultName[];
  /** A path below the base URL, with the works of a day. */
  example(day: string): string;
  /** What a server has to have in its environment to be answered. */
  env?: Readonly<Record<string, string>>;
}

/** All simulators, by the name of their source. */
export const SIMULATORS: Readonly<Record<string, SimulatorKind>> = {
  crossref: {
    start: startCrossref,
    faults: CROSSREF_FAULTS,
    example: (day) => `/works?filter=from-update-date:${day},until-update-date:${day}&rows=2&cursor=*`,
  },
  pubmed: {
    start: startPubmed,
    faults: PUBMED_FAULTS,
    example: (day) => {
      const date = day.replaceAll("-", "/");
      return `/esearch.fcgi?db=pubmed&retmode=json&term=all[sb]&datetype=mdat&mindate=${date}&maxdate=${date}`;
    },
  },
  arxiv: {
    start: startArxiv,
    faults: ARXIV_FAULTS,
    example: (day) => `/oai?verb=ListRecords&metadataPrefix=arXiv&from=${day}&until=${day}`,
  },
  europepmc: {
    start: startEuropepmc,
    faults: EUROPEPMC_FAULTS,
    example: (day) => `/search?query=UPDATE_DATE:[${day}+TO+${day}]&format=json&resultType=core&pageSize=2`,
  },
  openalex: {
    start: startOpenalex,
    faults: OPENALEX_FAULTS,
    example: (day) =>
      `/works?filter=from_updated_date:${day},to_updated_date:${day}T23:59:59&per_page=2&cursor=*&api_key=example-key`,
    env: { OPENALEX_API_KEY: "example-key" },
  },
};

/** The data set of the benchmarks: 100,000 records of 1 KB in ten days, without limits; the client decides about compression. */
export const BENCH: SimulatorOptions = {
  days: Array.from({ length: 10 }, (_, index) => `2026-08-${String(index + 1).padStart(2, "0")}`),
  recordsPerDay: 10_000,
  sizeBytes: 1024,
  unlimited: true,
};
