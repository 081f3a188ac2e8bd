/** What is declared of a gate: the limits of an external service. Validated where it comes in: at the API, or by a module. */
import { type Static, Type } from "typebox";
import type { QuotaUnit } from "./store.ts";

export const KEY_LENGTH_MAX = 200;
export const KEY_PATTERN = "^[\\x21-\\x7e]+$";
export const CONCURRENCY_MAX = 1_000;
const QUOTAS_MAX = 10;
export const RATE_MIN = 0.00001;
export const RATE_MAX = 10_000;
export const WINDOW_SEC_MAX = 31_708_800; // 367 days

export const GateKey = Type.String({
  minLength: 1,
  maxLength: KEY_LENGTH_MAX,
  pattern: KEY_PATTERN,
  description: "Printable ASCII without spaces.",
});

const QuotaDeclaration = Type.Object(
  {
    unit: Type.Enum(["requests", "credits", "usd_micros"] as const satisfies readonly QuotaUnit[]),
    windowSec: Type.Number({
      minimum: 1,
      maximum: WINDOW_SEC_MAX,
      description: "Windows begin at multiples of their length since 1970 (UTC), unless the service says otherwise.",
    }),
    limit: Type.Number({ exclusiveMinimum: 0, maximum: 1e15 }),
    heldBack: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 0.99,
        default: 0.1,
        description: "The share that only work with a priority below 100 may spend.",
      }),
    ),
  },
  { additionalProperties: false },
);

export const GateLimits = {
  ratePerSec: Type.Number({
    minimum: RATE_MIN,
    maximum: RATE_MAX,
    description: "The limit of the service: no window of a second has more requests. 0.333 means one in three seconds.",
  }),
  burst: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: RATE_MAX,
      default: 1,
      description: "Requests that may go at once. They count towards the limit, so a larger burst costs throughput.",
    }),
  ),
  concurrency: Type.Optional(
    Type.Integer({ minimum: 1, maximum: CONCURRENCY_MAX, description: "Requests at a time; without it, any number." }),
  ),
  warmupSec: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 86_400,
      default: 0,
      description: "For so long after a pause or a cooldown the rate rises from half to all of it.",
    }),
  ),
  floorPerSec: Type.Optional(
    Type.Number({ minimum: RATE_MIN, maximum: RATE_MAX, default: 0.1, description: "The rate is not cut below this." }),
  ),
  cutFactor: Type.Optional(
    Type.Number({ exclusiveMinimum: 1, maximum: 100, default: 2, description: "What a cut divides the rate by." }),
  ),
  riseAfterSec: Type.Optional(
    Type.Number({
      minimum: 0.1,
      maximum: 86_400,
      default: 10,
      description: "After a cut, each such time without another adds a tenth of the declared rate.",
    }),
  ),
  quotas: Type.Optional(Type.Array(QuotaDeclaration, { maxItems: QUOTAS_MAX, default: [] })),
};
export const GateDeclaration = Type.Object({ key: GateKey, ...GateLimits }, { additionalProperties: false });
export type GateDeclaration = Static<typeof GateDeclaration>;

/** Why a declaration of the right types is still wrong, without a full stop. */
export function faultOf({ ratePerSec, burst = 1, quotas = [] }: Omit<GateDeclaration, "key">): string | undefined {
  const burstMax = Math.max(1, Math.floor(ratePerSec));
  if (burst > burstMax) {
    return `burst ${burst} is more than ${burstMax}, the limit of a second: requests that go at once count towards it`;
  }
  const windows = quotas.map(({ unit, windowSec }) => `${unit} in ${windowSec} s`);
  const repeated = windows.find((window, index) => windows.indexOf(window) !== index);
  return repeated === undefined ? undefined : `quotas has ${repeated} twice`;
}
