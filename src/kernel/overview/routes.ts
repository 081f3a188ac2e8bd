/** The routes of the overview: the parts of all modules, merged, as far as the caller may see them. */
import { Type } from "typebox";
import { type Caller, type ScopeTable, whyNot } from "../auth/scopes.ts";
import type { Db } from "../data/db.ts";
import { ANY_SCOPE } from "../http/authenticate.ts";
import { Body, errors, NoQuery, Nullable, ReplyTime, Time } from "../http/schemas.ts";
import type { Http } from "../http/server.ts";
import type { Clock } from "../time/clock.ts";
import { type OverviewPart, type Waiting } from "./part.ts";
import { BUCKETS_MAX, HOURS_MAX, rangeOf } from "./range.ts";
import type { Activity, Overview } from "./replies.ts";
import { CAUSES, COUNTED_MAX, NEED_STATES, SOURCE_STATES } from "./values.ts";

const About = Type.Object(
  { kind: Type.String(), id: Type.String(), opTime: Type.Optional(Type.String()) },
  { description: "What it is about, in the kinds of hints where there is one." },
);
const Need = Type.Object({
  about: About,
  state: Type.Enum([...NEED_STATES]),
  title: Type.String(),
  reason: Type.String({ description: "Of the newest." }),
  count: Type.Integer(),
  at: Nullable(ReplyTime),
});
const WaitingEntry = Type.Object({
  cause: Type.Enum([...CAUSES], { description: "What it waits for." }),
  kind: Type.String({ description: "What waits." }),
  subject: Nullable(Type.String({ description: "The name of what it waits for: a table, a gate, a role." })),
  about: Nullable(About),
  count: Type.Integer({ description: `Counted up to ${COUNTED_MAX}.` }),
  oldestAt: Nullable(ReplyTime),
  nextAt: Nullable({ ...ReplyTime, description: "When the first of them goes on by itself." }),
});
const Source = Type.Object({
  source: Type.String(),
  name: Type.String(),
  state: Type.Enum([...SOURCE_STATES]),
  requests: Type.Integer({ description: "In the last hour, like all counts here." }),
  failedRequests: Type.Integer(),
  waitShare: Nullable(
    Type.Number({ description: "The part of the time of its runs that went into waiting for permits, 0 to 1." }),
  ),
  answerShare: Nullable(Type.Number({ description: "The same for waiting for its answers." })),
  gate: Nullable(Type.String({ description: "The rate gate that holds it back most." })),
  heldBack: Type.Integer({ description: "Tasks that have been put off until the gate opens." }),
  refusals: Type.Integer({ description: "Answers with the status 429." }),
  answerMs: Nullable(Type.Number()),
  usualAnswerMs: Nullable(Type.Number({ description: "Before the last hour." })),
  lagSeconds: Nullable(Type.Number()),
  lastSuccessAt: Nullable(ReplyTime),
});
const Counts = {
  ended: Type.Integer(),
  failed: Type.Integer(),
  stopped: Type.Integer({ description: "Neither succeeded nor failed." }),
};
const Bucket = Type.Integer({ description: "Its place in the range, from 0." });
const Ended = Type.Object({
  kind: Type.String(),
  lanes: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      underWay: Type.Integer(),
      cells: Type.Array(
        Type.Object({
          bucket: Bucket,
          ...Counts,
          failedId: Nullable(Type.String({ description: "The newest that has failed." })),
        }),
      ),
    }),
  ),
  moreLanes: Type.Integer({ description: "Lanes that are not shown. Those with failures come first." }),
  buckets: Type.Array(
    Type.Object({
      bucket: Bucket,
      ...Counts,
      p95Ms: Type.Number({ description: "From the request to the end, for 95 of 100." }),
    }),
  ),
  countedFrom: Nullable({
    ...ReplyTime,
    description: "Where more has ended than is counted: the time from which all is.",
  }),
});
const Lag = Type.Object({
  about: About,
  name: Type.String(),
  seconds: Type.Array(Nullable(Type.Number()), { description: "At the end of each bucket." }),
});

const Hidden = Type.Array(Type.String(), {
  description: "The scopes of parts that are left out: the caller lacks them, or is bound to a tenant.",
});

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
        summary: "What needs a person, what waits and for what, and how each source fares",
        querystring: NoQuery,
        response: {
          200: Type.Object({
            needs: Type.Array(Need, { description: "The newest first." }),
            waiting: Type.Array(WaitingEntry, { description: "The most first." }),
            sources: Type.Array(Source),
            hidden: Hidden,
          }),
        },
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
        summary: "What has ended over time, in buckets and by lane, and how far sources were behind",
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
          200: Type.Object({
            from: ReplyTime,
            to: ReplyTime,
            bucketMs: Type.Integer(),
            buckets: Type.Integer({ description: `At most ${BUCKETS_MAX}.` }),
            ended: Type.Array(Ended),
            lags: Type.Array(Lag),
            hidden: Hidden,
          }),
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
