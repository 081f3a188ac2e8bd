/** A simulator of NCBI's E-utilities for PubMed (`https://eutils.ncbi.nlm.nih.gov/entrez/eutils`): ESearch, EFetch and EPost. */
import { SECOND_MS } from "../../kernel/time/units.ts";
import {
  type Simulator,
  type SimulatorOptions,
  type SourceContext,
  startSimulator,
  TRANSPORT_FAULTS,
} from "../common/simulator.ts";
import type { Answer, KeyedLimit, Source, SourceRequest } from "../common/source.ts";
import { pmidOf, writeArticle } from "./article.ts";
import { efetch, epost } from "./efetch.ts";
import { CEILING, esearch } from "./esearch.ts";
import { createSessions } from "./sessions.ts";

export interface PubmedOptions extends SimulatorOptions {
  /** How long a session lives after its last request. */
  sessionIdleMs?: number;
  /** How many records of a query it gives, instead of 9,999. */
  ceiling?: number;
  /** Words that a query does not find. */
  unknownPhrases?: readonly string[];
}

export const PUBMED_FAULTS = [
  ...TRANSPORT_FAULTS,
  "duplicate-across-pages",
  "total-off-by-one",
  "header-change",
  "token-expiry",
  "rate-limit-body-200",
  "timeout-400",
  "error-200",
  "missing-pmid",
  "delete-citation",
  "control-character",
] as const;

const SESSION_IDLE_MS = 8 * 3_600_000;
const RETRY_AFTER_SECONDS = 2;
/** A longer URL is refused; ids belong in a POST then. */
const URL_LENGTH_MAX = 8190;

export function startPubmed(options: PubmedOptions = {}): Promise<Simulator> {
  const { recordsPerDay = 0, ceiling = CEILING, publishedDays = publishedDaysOf(recordsPerDay, ceiling) } = options;
  return startSimulator(
    {
      basePath: "/entrez/eutils",
      faults: PUBMED_FAULTS,
      keepsDeleted: false,
      idOf: pmidOf,
      write: writeArticle,
      open: (context) => openPubmed(context, options),
    },
    { ...options, publishedDays },
  );
}

/** Records that enter so late have the date of their publication as EDAT. */
const LATE_DAYS = 366;

/**
 * A day of more records than a query gives is mostly late entries, as at PubMed: one of 266,421 was divided by EDAT into 44 parts.
 * About half of what a query gives is entered in time; the rest is spread over the days before, so that EDAT divides it.
 */
function publishedDaysOf(recordsPerDay: number, ceiling: number): number {
  return recordsPerDay > ceiling ? Math.ceil((2 * LATE_DAYS * recordsPerDay) / ceiling) : 1;
}

function openPubmed({ store, random, clock }: SourceContext, options: PubmedOptions): Source {
  const sessions = createSessions({ clock, random, idleMs: options.sessionIdleMs ?? SESSION_IDLE_MS });
  const { unknownPhrases = [], ceiling = CEILING } = options;

  return {
    limitOf,
    rateHeaders: ({ urlLength }, { requests }, left) =>
      urlLength > URL_LENGTH_MAX
        ? {}
        : {
            "cache-control": "private",
            "x-ratelimit-limit": String(requests),
            "x-ratelimit-remaining": String(left),
            "access-control-expose-headers": "X-RateLimit-Limit,X-RateLimit-Remaining",
          },
    tooMany: (request, limit, count) => tooMany(429, request, limit, count),
    answer(request) {
      if (request.strikes("rate-limit-body-200")) {
        const limit = limitOf(request);
        return tooMany(200, request, limit, limit.requests + 1);
      }
      if (request.urlLength > URL_LENGTH_MAX) return URL_TOO_LONG;
      switch (request.path.split("/").at(-1) ?? "") {
        case "esearch.fcgi":
          return esearch(request, { store, sessions, clock, random, unknownPhrases, ceiling });
        case "efetch.fcgi":
          return efetch(request, { store, sessions });
        case "epost.fcgi":
          return epost(request, sessions);
        default:
          return {
            status: 404,
            type: "text/html; charset=utf-8",
            body: "<html><body><h1>404 Not Found</h1></body></html>\n",
          };
      }
    },
  };
}

/** Three requests a second for an address, ten for a key. */
function limitOf(request: SourceRequest): KeyedLimit {
  const key = request.params.get("api_key");
  return key === null || key === ""
    ? { key: `address ${request.remoteAddress}`, requests: 3, intervalMs: SECOND_MS }
    : { key: `key ${key}`, requests: 10, intervalMs: SECOND_MS };
}

/** The body has the caller's own key, or else its address. */
function tooMany(status: number, request: SourceRequest, { requests }: KeyedLimit, count: number): Answer {
  const body = JSON.stringify({
    error: "API rate limit exceeded",
    "api-key": request.params.get("api_key") ?? request.remoteAddress,
    count: String(count),
    limit: String(requests),
  });
  const headers = {
    "x-ratelimit-limit": String(requests),
    "x-ratelimit-remaining": "0",
    ...(status === 429 ? { "retry-after": String(RETRY_AFTER_SECONDS) } : {}),
  };
  return { status, type: "application/json", headers, body };
}

const URL_TOO_LONG: Answer = {
  status: 414,
  type: "text/html; charset=utf-8",
  headers: { "content-language": "en" },
  body:
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN"\n' +
    '  "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">\n<html xmlns="http://www.w3.org/1999/xhtml" lang="en" xml:lang="en">\n' +
    "<head>\n<title>Submitted URI too large!</title>\n</head>\n<body>\n<h1>Submitted URI too large!</h1>\n</body>\n</html>\n",
};
