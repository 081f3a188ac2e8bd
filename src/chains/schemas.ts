/** The bodies of chains and of what starts them, with the field names of the JobChain API. */
import { Type } from "typebox";
import { Body, Nullable, Page, PageQuery, ReplyTime } from "../kernel/http/schemas.ts";
import { GRAINS, OP_TIME_PATTERN } from "../kernel/time/op-time.ts";

const PRIORITY_MAX = 1_000_000;
const RUN_TIMEOUT_MS_MAX = 30 * 86_400_000;
const VERSION_MAX = 2 ** 53 - 1;

/** A path accepts any text: text that is not an id is answered like an unknown id. */
export const AnyId = Type.String({ minLength: 1, maxLength: 256 });

export const Name = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]+$",
  examples: ["nightly-orders"],
  description: "A name has 1 to 128 characters, at least one that is not a space, and no control characters.",
});
const Description = Nullable(Type.String({ maxLength: 10_000 }));
const DagJson = Type.Union([Type.String({ minLength: 1 }), Type.Object({}, { additionalProperties: true })], {
  description: "The DAG, as JSON text or as an object: `{ nodes: [...] }`.",
  examples: [
    {
      nodes: [
        { id: "a", type: "noop" },
        { id: "b", type: "noop", dependsOn: ["a"] },
      ],
    },
  ],
});
const MaxActiveRuns = Nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 }));
const RunTimeoutMs = Nullable(Type.Integer({ minimum: 1, maximum: RUN_TIMEOUT_MS_MAX }));
const Params = Type.Object(
  {},
  { additionalProperties: true, description: "Any JSON; nodes read it as `${params.x}`." },
);
export const OpTime = Type.String({
  pattern: OP_TIME_PATTERN,
  examples: ["20250101"],
  description: "An opTime has 1 to 255 of `A-Z a-z 0-9 _ . : -`.",
});
const Priority = Type.Integer({
  minimum: -PRIORITY_MAX,
  maximum: PRIORITY_MAX,
  description: "Smaller goes first; 0 by default.",
});
export const Reason = Nullable(Type.String({ maxLength: 2_000 }));
export const AnyJson = Type.Unknown({ description: "Any JSON." });

export const DeletedChain = Type.Object({ chainId: Type.String(), name: Type.String(), dryRun: Type.Boolean() });
export const ChainParams = Body({ chainId: AnyId });
export const VersionParams = Body({ chainId: AnyId, version: Type.Integer({ minimum: 1, maximum: VERSION_MAX }) });

const chainFields = {
  name: Name,
  description: Type.Optional(Description),
  dagJson: DagJson,
  maxActiveRuns: Type.Optional(MaxActiveRuns),
  runTimeoutMs: Type.Optional(RunTimeoutMs),
};
export const CreateChainBody = Object.assign(
  Body({ ...chainFields, enabled: Type.Optional(Nullable(Type.Boolean())) }),
  // Without it, the API reference generates an example with a time-out of one millisecond.
  { examples: [{ name: "hello", dagJson: { nodes: [{ id: "a", type: "noop" }] } }] },
);
export const UpdateChainBody = Body({ ...chainFields, version: Type.Integer({ minimum: 1, maximum: VERSION_MAX }) });

const Summary = {
  chainId: Type.String(),
  name: Type.String(),
  description: Nullable(Type.String()),
  enabled: Type.Boolean(),
  version: Type.Integer(),
  maxActiveRuns: Nullable(Type.Integer()),
  runTimeoutMs: Nullable(Type.Integer()),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
};
export const ChainDetail = Type.Object({ ...Summary, dagJson: Type.String(), dag: AnyJson });
/** With `dryRun` there is nothing new to return. */
const Verdict = Type.Object({ valid: Type.Boolean(), nodes: Type.Integer() });
export const ChainOrVerdict = Type.Union([ChainDetail, Verdict]);
export const ChainsQuery = Body({
  ...PageQuery,
  keyword: Type.Optional(Type.String({ maxLength: 128, description: "Part of the name or the description." })),
  enabled: Type.Optional(Type.Union([Type.Boolean(), Type.Literal("")])),
  name: Type.Optional(Type.String({ maxLength: 128, description: "The exact name." })),
});
export const ChainsReply = Page(
  Type.Object({
    ...Summary,
    nodeCount: Type.Integer(),
    lastRun: Nullable(Type.Object({ runId: Type.String(), status: Type.String(), createdAt: Type.String() })),
  }),
);

export const ChainSummariesQuery = Body({
  page: PageQuery.page,
  size: Type.Integer({ minimum: 1, maximum: 200, default: 100 }),
  keyword: Type.Optional(Type.String({ maxLength: 128, description: "Part of the name or the description." })),
});
export const ChainSummariesReply = Page(
  Type.Object({
    chainId: Type.String(),
    name: Type.String(),
    description: Nullable(Type.String()),
    enabled: Type.Boolean(),
    version: Type.Integer(),
    nodeCount: Type.Integer(),
    runs: Type.Array(
      Type.Object({
        runId: Type.String(),
        status: Type.String(),
        reason: Nullable(Type.String()),
        opTime: Nullable(Type.String()),
        createdAt: Type.String(),
        startedAt: Nullable(Type.String()),
        endedAt: Nullable(Type.String()),
      }),
      { description: "The last 20, newest first." },
    ),
    next: Nullable(
      Type.Object({ at: ReplyTime, name: Type.String() }, { description: "The schedule that fires next." }),
    ),
    waitsFor: Type.Array(Type.String(), { description: "Tables that its nodes wait for, 20 at most." }),
    p50Ms: Nullable(Type.Number({ description: "Of those of the last 100 runs that succeeded." })),
    p95Ms: Nullable(Type.Number()),
  }),
);

const Version = {
  version: Type.Integer(),
  name: Type.String(),
  description: Nullable(Type.String()),
  createdAt: ReplyTime,
  createdBy: Type.String(),
};
export const VersionsQuery = Body({
  before: Type.Optional(
    Type.Integer({ minimum: 1, maximum: VERSION_MAX, description: "The `next` of the previous page." }),
  ),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
});
export const VersionReply = Type.Object({ ...Version, dagJson: Type.String(), dag: AnyJson });
export const VersionsReply = Type.Object({ items: Type.Array(Type.Object(Version)), next: Nullable(Type.Integer()) });

export const startFields = {
  params: Type.Optional(Params),
  priority: Type.Optional(Priority),
};
export const StartBody = Nullable(Body({ ...startFields, opTime: Type.Optional(Nullable(OpTime)) }));
export const StartHeaders = Type.Object({
  "idempotency-key": Type.Optional(Type.String({ minLength: 1, maxLength: 255, pattern: "^[!-~]+$" })),
});
export const StartReply = Type.Union([Type.Object({ runId: Type.String() }), Verdict]);
export const BackfillBody = Body({
  from: OpTime,
  to: OpTime,
  grain: Type.Optional(Type.Enum(GRAINS)),
  ...startFields,
  dryRun: Type.Boolean({ default: false }),
});
export const BackfillReply = Type.Object({
  opTimes: Type.Array(Type.String()),
  runs: Type.Array(Type.Object({ opTime: Type.String(), runId: Type.String() })),
});
