/** The routes of the overview: the parts of all modules, merged, as far as the caller may see them. */
import { Type } from "typebox";
import { type Caller, type ScopeTable, whyNot } from "../auth/scopes.ts";
import type { Db } from "../data/db.ts";
import { ANY_SCOPE } from "../http/authenticate.ts";
import { Body, errors, NoQuery, Time } from "../http/schemas.ts";
import type { Http } from "../http/server.ts";
import type { Clock } from "../time/clock.ts";
import { type OverviewPart, type Waiting } from "./part.ts";
import { HOURS_MAX, rangeOf } from "./range.ts";
import type { Activity, Overview } from "./replies.ts";
import { ActivityReply, OverviewReply } from "./schemas.ts";

export interface OverviewDeps {
  db: Db;
  clock: Clock;
  scopes: ScopeTable;
  parts: readonly OverviewPart[];
}

export function overviewRoutes(http: Http, { db, clock, scopes, parts }: OverviewDeps): void {
  const config = { scope: ANY_SCOPE };
  const tags = ["server"];
  const maySee = (caller: Caller, { scope }: OverviewPart) => whyNot(caller, scope, scopes) === undefined;
  const seen = (caller: Caller) => parts.filter((part) => maySee(caller, part));
  const hidden = (caller: Caller) => [
    ...new Set(parts.filter((part) => !maySee(caller, part)).map(({ scope }) => scope)),
  ];

  http.get(
    "/overview",
    {
      config,
      schema: {
        tags,
        summary: "What needs attention, what waits and for what, and the health of each source",
        querystring: NoQuery,
        response: { 200: OverviewReply },
      },
    },
    async ({ caller }) => {
      const all = await Promise.all(seen(caller).map((part) => part.now(db, { tenantId: caller.tenantId })));
      return {
        needs: all.flatMap(({ needs }) => needs).sort((a, b) => timeOf(b.at) - timeOf(a.at)),
        waiting: all.flatMap(({ waiting }) => waiting).sort(byCount),
        sources: all.flatMap(({ sources = [] }) => sources),
        hidden: hidden(caller),
      } satisfies Overview<Date>;
    },
  );

  http.get(
    "/overview/activity",
    {
      config,
      schema: {
        tags,
        summary: "Finished work over time, in buckets and by lane, and the lag of sources",
        querystring: Body({
          from: Type.Optional(Time),
          to: Type.Optional({ ...Time, description: "RFC 3339. Unset: now." }),
          hours: Type.Integer({
            minimum: 1,
            maximum: HOURS_MAX,
            default: 24,
            description: "Without `from`, the range is this long.",
          }),
        }),
        response: {
          200: ActivityReply,
          ...errors(400),
        },
      },
    },
    async ({ caller, query }) => {
      const range = rangeOf(query, clock.now());
      const all = await Promise.all(seen(caller).map(async (part) => part.activity?.(db, range)));
      return {
        ...range,
        ended: all.flatMap((one) => one?.ended ?? []),
        lags: all.flatMap((one) => one?.lags ?? []),
        hidden: hidden(caller),
      } satisfies Activity<Date>;
    },
  );
}

function timeOf(at: Date | null): number {
  return at?.getTime() ?? 0;
}

function byCount(a: Waiting, b: Waiting): number {
  return b.count - a.count;
}
