/** The parts of the harvest API that `millrace harvest` uses. */
import { UUID } from "../../kernel/ids.ts";
import { type Client, pathTo, Refusal } from "../common/client.ts";
import { EXIT } from "../common/exit-codes.ts";
import type { Listed } from "./listed.ts";

export type PlanStatus = "DRAFT" | "SLICING" | "READY" | "PARTIAL" | "FAILED" | "COMPLETE" | "CANCELLED";
type SliceStatus = "READY" | "FAILED" | "COMPLETE" | "INCOMPLETE" | "SPLIT" | "CANCELLED";
type LandingStatus = "PENDING" | "LANDING" | "LANDED" | "FAILED";
type TaskStatus = "QUEUED" | "EXECUTING" | "SUCCEEDED" | "FAILED" | "PARTIAL" | "CANCELLED";

/** `to` is exclusive. Null for an endpoint without a window. */
export type Window = { from: string; to: string } | null;

/** Of the definition. */
interface Warning {
  field: string;
  reason: string;
}

/** What was expected before all records had come, and by what. */
export interface Estimate {
  records: number;
  basis: "TOTAL" | "HINT" | "SAMPLE" | "HISTORY";
}

/** How a window is divided if it has as many records as expected. */
export interface Division {
  by: string;
  parts: number;
  first: { name: string; records: number | null }[];
  isKnown: boolean;
}

/** A dimension that divides a slice over the cap of its source. */
export interface LadderStep {
  name: string;
  type: string;
  kind: "halves" | "list";
  parts: string[];
  count: number;
}

export interface PlanMade {
  /** Null in a dry run. */
  planId: string | null;
  source: string;
  endpoint: string;
  operation: string;
  window: Window;
  priority: number;
  slices: number;
  unslicedFrom: string | null;
  notes: string[];
  warnings: Warning[];
  /** In a dry run: those of the first slices, with what requests will have. */
  windows?: {
    from: string;
    to: string;
    bounds: { from: string; until: string; to: string };
    estimate?: Estimate | null;
    division?: Division | null;
  }[];
  /** An older server answers neither this nor what is expected of windows. */
  estimate?: Estimate | null;
  /** In a dry run: of slices by id. */
  parts?: Record<string, object>[];
  slicedBy?: "TIME" | "PAGE" | "ID" | null;
  limits?: { cap: number | null; slice: number | null };
  ladder?: LadderStep[];
}

export interface Plan {
  planId: string;
  status: PlanStatus;
  source: string;
  endpoint: string;
  operation: string;
  /** The endpoint, with a hash of the parameters that select records if there are any. */
  namespace: string;
  window: Window;
  priority: number;
  createdAt: string;
  endedAt: string | null;
  unslicedFrom: string | null;
  /** Why no task of it starts; an older server does not answer it. */
  paused?: string | null;
}

export interface Reconciliation {
  expected: number | null;
  received: number;
  /** Records that came again, such as after a restart. */
  repeated: number;
  inserted: number;
  updated: number;
  unchanged: number;
  deleted: number;
  quarantined: number;
  /** Ids that the source listed and did not answer. */
  missing: number;
  gaps: number;
  /** Those of the gaps that somebody has accepted. */
  acceptedGaps: number;
}

export interface Gap {
  sliceId: number;
  window: Window;
  status: SliceStatus;
  reason: string | null;
  /** Records that were announced and did not come. */
  missing: number | null;
  accepted: Accepted | null;
}

/** A slice that has not ended. */
export interface OpenSlice {
  sliceId: number;
  window: Window;
  /** Of a part: the slice that has its window. */
  rootSliceId: number | null;
  isParted: boolean;
  /** As far as the source announces it. */
  expected: number | null;
  received: number;
}

export interface Divided {
  sliceId: number;
  window: Window;
  expected: number | null;
  /** The dimensions that divide it, or `pages`. */
  by: string[];
  /** How many are in each state. */
  parts: Partial<Record<SliceStatus, number>>;
}

/** Who has accepted a gap, and why. */
export interface Accepted {
  at: string;
  by: string;
  reason: string;
}

export interface Landing {
  table: string;
  opTime: string;
  status: LandingStatus;
  rows: number | null;
  error: string | null;
}

/** Why tasks do not go on; `tasks` is 0 where the plan itself waits. */
export interface Wait {
  reason: string;
  tasks: number;
  until: string | null;
}

export interface PlanDetail extends Plan {
  slices: Partial<Record<SliceStatus, number>>;
  tasks: Partial<Record<TaskStatus, number>>;
  reconciliation: Reconciliation;
  gapWindows: Gap[];
  /** The first 100 slices that were divided into parts. An older server answers neither this nor `estimate`. */
  divided?: Divided[];
  estimate?: Estimate | null;
  waits: Wait[];
  /** The same, with what executing tasks wait for; an older server does not answer it. */
  waiting?: Wait[];
  /** Why nothing of it goes on until a person acts; an older server does not answer it. */
  stopped?: string | null;
  /** Null if the endpoint lands nowhere. */
  landing: {
    table: string;
    windows: Partial<Record<LandingStatus, number>>;
    obstacle: string | null;
    /** An older server answers neither of these. */
    grain?: "hour" | "day";
    partial?: string[];
  } | null;
  /** At most 100, those that have not landed first. */
  landings: Landing[];
}

export const HARVEST = "api/v1/harvest";

export async function fetchPlan(client: Client, planId: string, signal?: AbortSignal): Promise<PlanDetail> {
  const path = pathTo`api/v1/harvest/plans/${planId}`;
  return withPlanHint(planId, () => client.call<PlanDetail>({ method: "GET", path, ...(signal ? { signal } : {}) }));
}

const OPEN_SLICES_MAX = 20;

/** The first of them, in the order of their numbers. */
export async function fetchOpenSlices(client: Client, plan: PlanDetail): Promise<Listed<OpenSlice>> {
  if (hasEnded(plan)) return { items: [] };
  const path = pathTo`api/v1/harvest/plans/${plan.planId}/slices`;
  return client.call<Listed<OpenSlice>>({ method: "GET", path, query: { status: "READY", limit: OPEN_SLICES_MAX } });
}

/** Improves the error if `planId` is the name of something else. */
export async function withPlanHint<Result>(planId: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refusal) || error.exitCode !== EXIT.notFound || UUID.test(planId)) throw error;
    throw error.withMessage(`\`${planId}\` is not the id of a plan. See \`millrace harvest status\`.`);
  }
}

export function hasEnded({ endedAt }: Pick<Plan, "endedAt">): boolean {
  return endedAt !== null;
}

/** How many windows have yet to land. */
export function windowsToLand({ landing }: PlanDetail): number {
  const { PENDING = 0, LANDING = 0 } = landing?.windows ?? {};
  return PENDING + LANDING;
}

/** The plan has ended, and so has the landing of its windows, unless something is in its way. Or nothing of it goes on by itself. */
export function isOver(plan: PlanDetail): boolean {
  if (isStopped(plan)) return true;
  return hasEnded(plan) && (windowsToLand(plan) === 0 || plan.landing?.obstacle !== null);
}

export function isStopped({ stopped = null }: PlanDetail): boolean {
  return stopped !== null;
}

/** The exit code for a plan as it is: one that goes on has not failed. */
export function exitCodeFor(plan: PlanDetail): number {
  const { status, landing } = plan;
  if (status === "CANCELLED") return EXIT.runStopped;
  return status === "FAILED" || isStopped(plan) || (landing?.windows.FAILED ?? 0) > 0 ? EXIT.failed : EXIT.ok;
}
