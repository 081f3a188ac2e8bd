/**
 * Replies of the overview, declared once for the server and the page. `Time` is a `Date` where the server makes a reply, and text
 * where it is read. The page imports these types from here, so this file imports nothing but types.
 */
import type { CAUSES, NEED_STATES, SOURCE_STATES } from "./values.ts";

/** What an entry is about, in the kinds of hints where there is one: a page links to it. */
export interface About {
  kind: string;
  id: string;
  opTime?: string;
}

/** Something that does not go on without a person. Those with one reason are one entry. */
export interface Need<Time = string> {
  about: About;
  state: (typeof NEED_STATES)[number];
  /** Its name, for people. */
  title: string;
  /** Of the newest. */
  reason: string;
  count: number;
  /** When the newest came to be so, if that is known. */
  at: Time | null;
}

export type Cause = (typeof CAUSES)[number];

export interface Waiting<Time = string> {
  cause: Cause;
  /** What waits: `node`, `model`. */
  kind: string;
  /** The name of what it waits for: the table, the gate, the role. */
  subject: string | null;
  about: About | null;
  /** Up to COUNTED_MAX. */
  count: number;
  oldestAt: Time | null;
  /** When the first of them goes on by itself. */
  nextAt: Time | null;
}

/** How an external source fares, over the last hour. */
export interface SourceHealth<Time = string> {
  source: string;
  name: string;
  state: (typeof SOURCE_STATES)[number];
  requests: number;
  failedRequests: number;
  /** The parts of the time of its runs that went into waiting for permits and for answers, 0 to 1; null without runs. */
  waitShare: number | null;
  answerShare: number | null;
  /** The rate gate that holds it back most. */
  gate: string | null;
  /** Pieces of work that have been put off until the gate opens. */
  heldBack: number;
  /** Something of it is paused until somebody acts, since the source refuses access. */
  accessRefused: boolean;
  /** Answers with the status 429. */
  refusals: number;
  answerMs: number | null;
  /** Before the last hour. */
  usualAnswerMs: number | null;
  lagSeconds: number | null;
  lastSuccessAt: Time | null;
}

export interface Overview<Time = string> {
  needs: readonly Need<Time>[];
  waiting: readonly Waiting<Time>[];
  sources: readonly SourceHealth<Time>[];
  /** The scopes of parts that are left out: the caller lacks them, or is bound to a tenant. */
  hidden: readonly string[];
}

export interface Counts {
  ended: number;
  failed: number;
  /** Neither succeeded nor failed. */
  stopped: number;
}
export interface Cell extends Counts {
  bucket: number;
  /** The newest that has failed. */
  failedId: string | null;
}
export interface Lane {
  id: string;
  name: string;
  underWay: number;
  cells: Cell[];
}
export interface Ended<Time = string> {
  kind: string;
  lanes: Lane[];
  /** Lanes that are not shown. Those with failures come first. */
  moreLanes: number;
  buckets: (Counts & { bucket: number; p95Ms: number })[];
  /** Where more has ended than is counted: the time from which all is. */
  countedFrom: Time | null;
}

/** How far something was behind, at the end of each bucket. */
export interface Lag {
  about: About;
  name: string;
  seconds: (number | null)[];
}

export interface Activity<Time = string> {
  from: Time;
  to: Time;
  bucketMs: number;
  buckets: number;
  ended: readonly Ended<Time>[];
  lags: readonly Lag[];
  hidden: readonly string[];
}
