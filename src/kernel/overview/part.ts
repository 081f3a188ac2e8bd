/**
 * What a module shows on the overview, the first page of the console: what needs attention, what waits and for what, and finished work
 * over time. Each opened module has one part; the routes merge the parts that the caller may see.
 *
 * A part costs what it shows, never what history holds: it reads queues, the newest failures and ranges of indexed times, each
 * with a limit.
 */
import type { Db } from "../data/db.ts";
import type { Range } from "./range.ts";
import type * as replies from "./replies.ts";

export type { Lag } from "./replies.ts";
export type Need = replies.Need<Date>;
export type Waiting = replies.Waiting<Date>;
export type SourceHealth = replies.SourceHealth<Date>;

export interface OverviewPart {
  /** Callers without this scope do not see the part. */
  readonly scope: string;
  /** The kinds of its entries that a doctor check of the module covers. */
  readonly checkedKinds?: readonly string[];
  now(db: Db, view: View): Promise<Now>;
  activity?(db: Db, range: Range): Promise<Activity>;
  /** Failed work that is not itself an entry of `now`, which names what is missing because of it. The doctor counts it; `command` lists it. */
  readonly failures?: { readonly command: string; of(db: Db): Promise<Need[]> };
}

/** What the caller may see. */
export interface View {
  /** Of a caller that is bound to a tenant: nothing of another tenant. */
  tenantId: string | null;
}

export interface Now {
  needs: Need[];
  waiting: Waiting[];
  sources?: SourceHealth[];
}

export interface Activity {
  ended: replies.Ended<Date>[];
  lags?: replies.Lag[];
}

/** Entries of one kind in one part. */
export const ENTRIES_MAX = 20;
/** How long ago a failure may be to need somebody still. */
export const NEEDED_DAYS = 7;
