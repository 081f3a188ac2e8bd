/** What is asked of the planner, what it answers, and what the two have in common. */

import { ApiError, invalid } from "../../kernel/errors.ts";
import { fingerprint } from "../../kernel/json/canonical.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { harvestError } from "../catalogue.ts";
import type { Definition, ParamValues } from "../definition/definition.ts";
import { defaultEndpoint } from "../definition/rows.ts";
import type { Estimate } from "../slice/estimate.ts";
import type { Operation, Snapshot } from "../spec/snapshot.ts";
import type { PlanState } from "../states.ts";
import type { Namespace, NewInstance, PlanStrategy } from "../store/plans/plans.ts";
import type { AskedWindow } from "./range.ts";
import type { Sizes } from "./sizes.ts";
import type { Piece } from "./slices.ts";
import type { IdPart } from "./update.ts";
import type { Range } from "./window.ts";

export interface PlanRequest {
  source: string;
  /** Unset: the endpoint that the definition calls its default. */
  endpoint?: string | undefined;
  operation: Operation;
  window?: AskedWindow | undefined;
  params?: ParamValues | undefined;
  /** For UPDATE: the records of these, whether they are known or not. */
  ids?: string[] | undefined;
  /** For UPDATE: what is quarantined. */
  quarantined?: boolean | undefined;
  priority?: number | undefined;
}

/** What asks for a plan. The same schedule and time ask once. */
export interface Trigger {
  type: "MANUAL" | "SCHEDULE" | "CHAIN";
  /** The schedule, or the run and node of a chain. */
  scheduleId: string | null;
  firedAt: Date | null;
  by: string;
}

export interface PlanMade {
  planId: string;
  scheduleInstanceId: string;
  status: Extract<PlanState, "READY" | "PARTIAL">;
  source: string;
  endpoint: string;
  operation: Operation;
  window: Range | null;
  priority: number;
  plannedAt: Date;
  /** Those that were made now. */
  slices: number;
  /** Where slicing goes on; what is behind it is not sliced yet, and for BACKFILL what is before it. */
  unslicedFrom: Date | null;
  /** Of all its windows, if anything is known of them. */
  estimate: Estimate | null;
  notes: string[];
  warnings: readonly object[];
}

/** Why there is nothing to plan, without a full stop, and when there will be. */
export interface Nothing {
  nothing: string;
  closesAt: Date | null;
}

/** What a plan takes. */
export interface Choice {
  window: Range | null;
  ranges: Range[];
  /** For UPDATE, instead of windows. */
  parts?: IdPart[];
  strategy: PlanStrategy;
  notes: string[];
}

export type Outcome =
  | { plan: PlanMade }
  | Nothing
  /** This trigger has its plan. */
  | { repeated: true };

/** What a plan would be. */
export interface Draft extends Omit<PlanMade, "planId" | "scheduleInstanceId" | "status" | "unslicedFrom"> {
  windows: readonly Piece[];
  sizes: Sizes;
  snapshot: Snapshot;
}

/** The part of the registry that plans need. */
export interface Sources<Source extends KnownSource = KnownSource> {
  get(source: string): Promise<Source>;
  /** Throws DEFINITION_INVALID with all problems. */
  compile(source: Source, endpoint: string, operation: Operation, trigger: { params?: ParamValues }): Promise<Compiled>;
}
export interface KnownSource {
  source: string;
  definition: Definition;
  endpointIds: ReadonlyMap<string, number>;
}
interface Compiled {
  snapshot: Snapshot;
  specFingerprint: string;
  exprProtoHash: string;
  origins: object;
  warnings: readonly object[];
}

/** A request with the endpoint and the snapshot that it means. */
export interface Resolved extends Compiled {
  request: PlanRequest;
  endpoint: string;
  endpointId: number;
}

/** What the queue is fair between. */
export function partitionKeyOf({ request, endpoint }: Resolved): string {
  return `${request.source}/${endpoint}/${request.operation}`;
}

/** Parameters that select records ask for others, so they have a watermark of their own. No endpoint's name has a colon. */
export function namespaceOf({ request, endpoint, endpointId, snapshot }: Resolved): Namespace {
  const { operation, params = {} } = request;
  const declared = [...snapshot.spec.params, ...(snapshot.detail?.params ?? [])];
  const isSelecting = (name: string) => !declared.some((param) => param.name === name && param.selects === false);
  const selecting = Object.entries(params).filter(([name]) => isSelecting(name));
  const suffix = selecting.length === 0 ? "" : `:${fingerprint(Object.fromEntries(selecting)).slice(0, 8)}`;
  // BACKFILL and UPDATE have cursors of their own, which never touch the watermark of HARVEST.
  return { endpointId, operation, scope: operation === "HARVEST" ? "EXPR" : "CUSTOM", key: endpoint + suffix };
}

/** Whether what comes is only a part of the records, which does not become a partition of the table. */
export function landingNotes(resolved: Resolved): string[] {
  const { table } = resolved.snapshot.spec.landing ?? {};
  if (table === undefined || namespaceOf(resolved).key === resolved.endpoint) return [];
  return [`No window lands in ${table}: the parameters select a part of the records.`];
}

/** No slice is longer, also on a day of 25 hours. */
export function widestOf({ spec }: Snapshot): number {
  return (spec.window?.maxWindowMs ?? 0) + DAY_MS;
}

export function credentialOf({ spec: { auth } }: Snapshot): string | null {
  return auth.type === "NONE" ? null : auth.credential;
}

/** The endpoint that is meant. Throws VALIDATION_FAILED. */
export function endpointOf({ source, definition }: KnownSource, asked: string | undefined): string {
  const { endpoints } = definition;
  const names = Object.keys(endpoints).filter((name) => endpoints[name]?.role === "SEARCH");
  if (asked !== undefined) {
    if (endpoints[asked]?.role !== "DETAIL") return asked;
    throw invalid(
      `The field \`endpoint\`: ${asked} answers single records and cannot be planned (${names.join(", ")} can)`,
    );
  }
  const usual = defaultEndpoint(definition);
  if (usual !== undefined) return usual;
  throw invalid(`The source ${source} has no default endpoint: name one in \`endpoint\` (${names.join(", ")})`);
}

const SCHEDULERS = { MANUAL: "api", SCHEDULE: "cron", CHAIN: "chain" } as const satisfies Record<
  Trigger["type"],
  string
>;

export function instanceOf(
  request: PlanRequest,
  endpoint: string,
  { type, scheduleId, firedAt, by }: Trigger,
): Omit<NewInstance, "schedule_instance_id" | "expr_proto_hash" | "record_remarks"> {
  const { source, operation, window, params, ids, quarantined, priority } = request;
  return {
    scheduler_code: SCHEDULERS[type],
    scheduler_job_id: scheduleId,
    scheduler_log_id: firedAt?.toISOString() ?? null,
    provenance_code: source,
    endpoint_name: endpoint,
    operation_code: operation,
    trigger_type_code: type,
    trigger_params: {
      window,
      params,
      priority,
      ...(ids ? { ids: ids.length } : {}),
      ...(quarantined ? { quarantined } : {}),
    },
    created_by: by,
  };
}

/** The definition cannot be planned with. */
export function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === "DEFINITION_INVALID";
}

/** A typing error in somebody's own request is answered, and nobody else is alerted. */
export function isCallersMistake({ type }: Trigger, { details: { problems } }: ApiError): boolean {
  const list = (Array.isArray(problems) ? problems : []) as readonly { table?: string }[];
  return type === "MANUAL" && list.length > 0 && list.every(({ table }) => table === "trigger");
}

export function nothingToPlan({ nothing, closesAt }: Nothing): ApiError {
  return harvestError("HARVEST_NOTHING_TO_PLAN", { closesAt: closesAt?.toISOString() ?? null }, { reason: nothing });
}
