/**
 * Types of the replies of the overview, derived from their schemas, for the server and the page. `Time` is a `Date` where the server
 * makes a reply, and text where it is read. The page imports these types from here, so this file imports nothing but types.
 */
import type { Static } from "typebox";
import type { ActivityReply, OverviewReply } from "./schemas.ts";

type Timed<Value, Time> = Value extends Date
  ? Time
  : Value extends object
    ? { [Key in keyof Value]: Timed<Value[Key], Time> }
    : Value;

export type Overview<Time = string> = Timed<Static<typeof OverviewReply>, Time>;
/** Something that needs attention. Those with the same reason are one entry. */
export type Need<Time = string> = Overview<Time>["needs"][number];
export type About = Need["about"];
export type Waiting<Time = string> = Overview<Time>["waiting"][number];
export type Cause = Waiting["cause"];
/** The health of an external source, over the last hour. */
export type SourceHealth<Time = string> = Overview<Time>["sources"][number];

export type Activity<Time = string> = Timed<Static<typeof ActivityReply>, Time>;
export type Ended<Time = string> = Activity<Time>["ended"][number];
export type Lane = Ended["lanes"][number];
export type Cell = Lane["cells"][number];
export type Lag = Activity["lags"][number];
