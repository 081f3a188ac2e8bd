/**
 * The faults of a simulator, by name. Each strikes with a probability under the seed, or the next so many requests, and counts
 * how often it did, so that a test can tell that what it survived has happened.
 */
import { didYouMean } from "../../kernel/nearest.ts";
import type { Random } from "./random.ts";

export const FAULTS = {
  // In the transport.
  "http-429": "The source's answer to too many requests, although there were not.",
  "http-500": "HTTP 500 with an HTML body.",
  "http-500-empty": "HTTP 500 without a body.",
  "http-503": "HTTP 503 with Retry-After.",
  "truncated-body": "A whole answer whose body ends in the middle.",
  "reset-after-headers": "The connection is reset in the middle of the body.",
  "reset-before-headers": "The connection is reset before the source has done anything.",
  "answer-lost": "The source does its work, then the connection is reset without an answer.",
  "slow-drip": "The body comes in small pieces with pauses.",
  gzip: "A compressed body, also for a client that did not ask for one.",
  latency: "The answer comes late.",
  "clock-skew": "The source's clock is an hour ahead in the header Date.",
  "retry-after-on-200": "Retry-After on a good answer.",
  "wrong-content-type": "The header Content-Type says HTML in ISO-8859-1, whatever the body is.",
  // In the protocol.
  "duplicate-across-pages": "A page repeats a record of the page before.",
  "short-page": "A page has one record less than it could, and is not the last.",
  "total-off-by-one": "The announced total is one more or one less than there are.",
  "order-shuffle": "A list comes in another order than the last time.",
  "header-change": "The rate limit halves, or returns to what it was; its headers say so from then on.",
  "late-arrival": "A record with an old date appears.",
  "update-during-paging": "A record changes between two pages.",
  "token-expiry": "The token of the next page, or the session, is no longer known.",
  "token-on-last-page": "The last page has a token, and the page behind it is empty.",
  // Of some sources.
  "control-character": "The text of XML has a U+000B, which XML does not allow.",
  "no-records-at-end": "The last page of OAI-PMH has a token, and the page behind it is the error noRecordsMatch.",
  "variable-page-size": "A page of OAI-PMH has half to all of the usual records.",
  "rate-limit-body-200": "The rate-limit body of NCBI with HTTP 200.",
  "timeout-400": "HTTP 400 for a time-out behind EFetch; the same request works later.",
  "error-200": "ESearch says with HTTP 200 that its search failed; the same request works later.",
  "delete-citation": "EFetch also names records that were deleted, in a DeleteCitation.",
  "missing-pmid": "EFetch leaves out one of the records that were asked for.",
  "bare-version": "Europe PMC answers nothing but its version, with HTTP 200.",
  "scalar-result": "Europe PMC's list of one article is the article itself.",
  "empty-result-list": "Europe PMC's list of no articles is missing.",
  "merged-work": "OpenAlex has merged the work into another, and redirects to it.",
} as const;

export type FaultName = keyof typeof FAULTS;

export interface FaultSetting {
  /** 0 to 1. */
  probability?: number;
  /** Strikes this many requests from now on, before the probability counts. */
  next?: number;
  /** Lets this many requests pass first that it could strike. */
  after?: number;
  /** Only requests whose path contains this text. */
  path?: string;
}

/** A number is a probability. */
export type FaultTable = Partial<Record<FaultName, number | FaultSetting>>;

export interface Faults {
  /** Changes the named ones and leaves the others; throws a RangeError for a name or value that makes no sense here. */
  set(table: Readonly<Record<string, unknown>>): void;
  clear(): void;
  /** Whether it strikes now; counts it if so. */
  strikes(name: FaultName, path: string): boolean;
  /** What is set, and how often each has struck. */
  table(): Record<string, FaultSetting & { struck: number }>;
}

export function createFaults({ names, random }: { names: readonly FaultName[]; random: Random }): Faults {
  const settings = new Map<FaultName, FaultSetting>();
  const struck = new Map<FaultName, number>();

  function isDue(setting: FaultSetting): boolean {
    if (setting.after !== undefined && setting.after > 0) {
      setting.after -= 1;
      return false;
    }
    if (setting.next !== undefined && setting.next > 0) {
      setting.next -= 1;
      return true;
    }
    return setting.probability !== undefined && random.next() < setting.probability;
  }

  return {
    set(table) {
      const parsed = Object.entries(table).map(
        ([name, value]) => [nameOf(name, names), settingOf(name, value)] as const,
      );
      for (const [name, setting] of parsed) settings.set(name, setting);
    },
    clear: () => settings.clear(),
    strikes(name, path) {
      const setting = settings.get(name);
      if (!setting || (setting.path !== undefined && !path.includes(setting.path)) || !isDue(setting)) return false;
      struck.set(name, (struck.get(name) ?? 0) + 1);
      return true;
    },
    table: () =>
      Object.fromEntries(
        [...new Set([...settings.keys(), ...struck.keys()])].map((name) => [
          name,
          { ...settings.get(name), struck: struck.get(name) ?? 0 },
        ]),
      ),
  };
}

function nameOf(name: string, names: readonly FaultName[]): FaultName {
  const found = names.find((known) => known === name);
  if (found === undefined) {
    throw new RangeError(
      `There is no fault \`${name}\` here.${didYouMean(name, names) || ` Faults: ${names.join(", ")}.`}`,
    );
  }
  return found;
}

function settingOf(name: string, value: unknown): FaultSetting {
  const setting = typeof value === "number" ? { probability: value } : value;
  if (typeof setting !== "object" || setting === null || Array.isArray(setting)) throw wrong(name);
  const { probability, next, after, path, ...rest } = setting as Record<string, unknown>;
  const isProbability =
    probability === undefined || (typeof probability === "number" && probability >= 0 && probability <= 1);
  const areCounts = [next, after].every(
    (count) => count === undefined || (Number.isInteger(count) && Number(count) >= 0),
  );
  const isPath = path === undefined || typeof path === "string";
  if (!isProbability || !areCounts || !isPath || Object.keys(rest).length > 0) throw wrong(name);
  return { ...setting };
}

function wrong(name: string): RangeError {
  return new RangeError(
    `The fault ${name} takes a probability from 0 to 1, or {"next": 3}, with an optional "after" and "path".`,
  );
}
