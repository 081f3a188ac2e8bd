/** The data set of a simulator: records spread over days, the same for the same seed. */

import { DAY_MS } from "../../kernel/time/units.ts";
import { type Random, randomFrom } from "./random.ts";
import { instantOf, type NewRecord, type SimulatedRecord } from "./records.ts";

export interface DataSet {
  /** `2026-08-01`, ...; in UTC. */
  days: readonly string[];
  recordsPerDay: number;
  /** The works were published on the day, or on any of so many days before it. */
  publishedDays?: number | undefined;
  /** About how many bytes a record has in an answer. */
  sizeBytes?: number | undefined;
}

const ABSTRACT_BYTES_DEFAULT = 300;
const ABSTRACT_BYTES_MIN = 16;

const WORDS =
  "asthma insulin cohort enzyme genome lattice neutron protein polymer sediment therapy vaccine network entropy catalysis climate".split(
    " ",
  );
/** A prime, so that neighbours were published at different times. */
const PUBLISHED_STEP = 7_919;
/** A text that abstracts are cut from: cheaper than drawing words for each. */
const PROSE_BYTES = 65_536;

/** Puts the records of the data set into `add`, in the order of their times. `idOf` names a record. */
export function generate(
  { days, recordsPerDay, publishedDays = 1 }: DataSet,
  {
    seed,
    idOf,
    add,
    abstractBytes,
  }: {
    seed: number;
    idOf: (ordinal: number, created: number) => string;
    add: (record: NewRecord) => void;
    abstractBytes: number;
  },
): void {
  const random = randomFrom(seed);
  const prose = proseFrom(random);
  let ordinal = 0;
  for (const day of days) {
    const start = instantOf(day);
    for (let index = 0; index < recordsPerDay; index += 1) {
      const updated = start + timeOfDay(index, recordsPerDay);
      add({
        id: idOf(ordinal, updated),
        title: titleOf(ordinal, random),
        abstract: cut(prose, random, abstractBytes),
        created: updated,
        updated,
        indexed: updated,
        published: start - ((ordinal * PUBLISHED_STEP) % publishedDays) * DAY_MS,
      });
      ordinal += 1;
    }
  }
}

/** Evenly over the day to the second; the first record at its first instant and the last in its last second. */
function timeOfDay(index: number, count: number): number {
  if (count === 1) return 0;
  return Math.floor((index * (DAY_MS / 1000 - 1)) / (count - 1)) * 1000;
}

/** How long an abstract is, so that a record has about `sizeBytes`; `write` is asked for the size of the rest. */
export function abstractBytesOf(
  sizeBytes: number | undefined,
  write: (record: Omit<SimulatedRecord, "text">) => string,
): number {
  if (sizeBytes === undefined) return ABSTRACT_BYTES_DEFAULT;
  const times = { created: 0, updated: 0, indexed: 0, published: 0 };
  const title = "insulin and lattice in work 10000";
  const frame = write({
    id: "10.5555/millrace.0000000",
    ordinal: 0,
    version: 1,
    title,
    abstract: "",
    deleted: false,
    ...times,
  });
  return Math.max(ABSTRACT_BYTES_MIN, sizeBytes - frame.length);
}

/** Some titles have characters that need care in JSON, XML or UTF-8; none that makes a page cost twice the memory. */
export function titleOf(ordinal: number, random: Random): string {
  const [one, two] = [word(random), word(random)];
  if (ordinal % 10 === 3) return `${one} & ${two} <in> work ${ordinal}`;
  if (ordinal % 10 === 6) return `Étude: "${one}" \\ ${two} in work ${ordinal}`;
  return `${one} and ${two} in work ${ordinal}`;
}

export function proseFrom(random: Random): string {
  const parts: string[] = [];
  for (let bytes = 0; bytes < PROSE_BYTES; ) {
    const next = word(random);
    parts.push(next);
    bytes += next.length + 1;
  }
  return parts.join(" ");
}

export function cut(prose: string, random: Random, bytes: number): string {
  if (bytes > prose.length / 2) return prose.repeat(Math.ceil((2 * bytes) / prose.length)).slice(0, bytes);
  const start = random.below(prose.length - bytes);
  return prose.slice(start, start + bytes).trim();
}

function word(random: Random): string {
  return WORDS[random.below(WORDS.length)] ?? "";
}
