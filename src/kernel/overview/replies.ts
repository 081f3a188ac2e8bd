/**
 * Types of the replies of the overview, derived from their schemas, for the server and the page. `Time` is a `Date` where the server
 * makes a reply, and text where it is read. The page imports these types from here, so this file imports nothing but types.
 */
import type { Static } from "typebox";
import type * as schemas from "./schemas.ts";

type Timed<Value, Time> = Value extends Date
  ? Time
  : Value extends object
    ? { [Key in keyof Value]: Timed<Value[Key], Time> }
    : Value;
type Reply<Schema extends keyof typeof schemas, Time> = Timed<Static<(typeof schemas)[Schema]>, Time>;

export type About = Static<typeof schemas.About>;
/** Something that needs attention. Those with the same reason are one entry. */
export type Need<Time = string> = Reply<"Need", Time>;
export type Waiting<Time = string> = Reply<"Waiting", Time>;
export type Cause = Waiting["cause"];
/** The health of an external source, over the last hour. */
export type SourceHealth<Time = string> = Reply<"SourceHealth", Time>;
export type Overview<Time = string> = Reply<"OverviewReply", Time>;

export type Ended<Time = string> = Reply<"Ended", Time>;
export type Lane = Ended["lanes"][number];
export type Cell = Lane["cells"][number];
export type Lag = Static<typeof schemas.Lag>;
export type Activity<Time = string> = Reply<"ActivityReply", Time>;
