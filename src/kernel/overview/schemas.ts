/** Schemas of the replies of the overview. Their types (replies.ts) are derived from them, so that no field can be missing here. */
import { Type } from "typebox";
import { Nullable, ReplyTime } from "../http/schemas.ts";
import { BUCKETS_MAX } from "./range.ts";
import { CAUSES, COUNTED_MAX, NEED_STATES, SOURCE_STATES } from "./values.ts";

const About = Type.Object(
  { kind: Type.String(), id: Type.String(), opTime: Type.Optional(Type.String()) },
  { description: "What it is about, in the kinds of hints where there is one." },
);
const Need = Type.Object({
  about: About,
  state: Type.Enum([...NEED_STATES]),
  title: Type.String(),
  reason: Type.String({ description: "Of the newest; of stuck work, of the oldest." }),
  count: Type.Integer(),
  at: Nullable({ ...ReplyTime, description: "Since when: of the newest; of stuck work, of the oldest." }),
});
const Waiting = Type.Object({
  cause: Type.Enum([...CAUSES], { description: "What it waits for." }),
  kind: Type.String({ description: "What waits." }),
  subject: Nullable(Type.String({ description: "The name of what it waits for: a table, a gate, a role." })),
  about: Nullable(About),
  count: Type.Integer({ description: `Counted up to ${COUNTED_MAX}.` }),
  oldestAt: Nullable(ReplyTime),
  nextAt: Nullable({ ...ReplyTime, description: "When the first of them continues." }),
});
const SourceHealth = Type.Object({
  source: Type.String(),
  name: Type.String(),
  state: Type.Enum([...SOURCE_STATES]),
  requests: Type.Integer({ description: "In the last hour, like all counts here." }),
  failedRequests: Type.Integer(),
  waitShare: Nullable(
    Type.Number({ description: "The part of the time of its runs that went into waiting for permits, 0 to 1." }),
  ),
  answerShare: Nullable(Type.Number({ description: "The same for waiting for its responses." })),
  gate: Nullable(Type.String({ description: "The rate gate that delays it most." })),
  heldBack: Type.Integer({ description: "Tasks that are postponed until the gate opens." }),
  accessRefused: Type.Boolean({
    description: "An endpoint of it is paused until a user resumes it, because the source denied access.",
  }),
  refusals: Type.Integer({ description: "Responses with the status 429." }),
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
      p95Ms: Type.Number({ description: "95th percentile of the time from the request to the end." }),
    }),
  ),
  countedFrom: Nullable({
    ...ReplyTime,
    description: "If more has finished than is counted: the time from which all is counted.",
  }),
});
const Lag = Type.Object({
  about: About,
  name: Type.String(),
  seconds: Type.Array(Nullable(Type.Number()), { description: "At the end of each bucket." }),
});

const Hidden = Type.Array(Type.String(), {
  description: "Scopes of the parts that are left out, because the caller lacks them or is bound to a tenant.",
});

export const OverviewReply = Type.Object({
  needs: Type.Array(Need, { description: "The newest first." }),
  waiting: Type.Array(Waiting, { description: "The most first." }),
  sources: Type.Array(SourceHealth),
  hidden: Hidden,
});
export const ActivityReply = Type.Object({
  from: ReplyTime,
  to: ReplyTime,
  bucketMs: Type.Integer(),
  buckets: Type.Integer({ description: `At most ${BUCKETS_MAX}.` }),
  ended: Type.Array(Ended),
  lags: Type.Array(Lag),
  hidden: Hidden,
});
