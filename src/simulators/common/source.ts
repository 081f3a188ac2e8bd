/** What a simulated source is to the server around it: how it reads requests, what it answers and which limits it has. */
import type { IncomingHttpHeaders } from "node:http";
import type { FaultName } from "./faults.ts";
import type { Random } from "./random.ts";
import type { Limit } from "./traffic.ts";

export interface SourceRequest {
  method: string;
  /** Decoded, without a slash at its end. */
  path: string;
  /** Of the URL and of a form in the body, in this order. */
  params: URLSearchParams;
  /** The length of the path and query as sent. */
  urlLength: number;
  headers: IncomingHttpHeaders;
  remoteAddress: string;
  /** Whether that fault strikes this request. */
  strikes(fault: FaultName): boolean;
}

export interface Answer {
  status: number;
  type: string;
  headers?: Record<string, string>;
  body: string;
}

/** The limit that a request is counted under. */
export interface KeyedLimit extends Limit {
  /** What is counted together: a caller, or a key, in one pool. */
  key: string;
}

export interface Source {
  limitOf(request: SourceRequest): KeyedLimit;
  /** The headers of a counted answer; `left` is how many requests of the interval remain. */
  rateHeaders(request: SourceRequest, limit: KeyedLimit, left: number): Record<string, string>;
  /** The answer to a request over the limit; `count` is how many there were in the interval. */
  tooMany(request: SourceRequest, limit: KeyedLimit, count: number): Answer;
  answer(request: SourceRequest): Answer;
}

/** What an answer says of how many records there are. */
export function announcedTotal(request: SourceRequest, random: Random, total: number): number {
  return total > 0 && request.strikes("total-off-by-one") ? total + random.pick([1, -1]) : total;
}
