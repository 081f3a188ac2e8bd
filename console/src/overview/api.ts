/** What the overview reads. */
import type { COUNTED_MAX as COUNTED } from "../../../src/kernel/overview/values.ts";
import { withQuery } from "../api/client.ts";

export type {
  About,
  Activity,
  Cell,
  Ended,
  Lane,
  Need,
  Overview,
  SourceHealth,
  Waiting,
} from "../../../src/kernel/overview/replies.ts";

/** Whatever is counted is counted up to this. */
export const COUNTED_MAX: typeof COUNTED = 10_000;

export const paths = {
  overview: "/api/v1/overview",
  activity: (query: { hours?: number; from?: string | undefined; to?: string | undefined }) =>
    withQuery("/api/v1/overview/activity", query),
};
