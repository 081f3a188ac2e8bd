/**
 * The hashes that identify what was asked of a source and how the answer was read. Budget, priority, rates, time-outs and other
 * telemetry change none of them, so that a changed estimate is not a new slice.
 */
import { fingerprint } from "../../kernel/json/canonical.ts";
import { firstPosition, type Position } from "../run/position.ts";
import type { Part } from "../slice/parts.ts";
import type { EndpointSpec, Snapshot } from "./snapshot.ts";

/** Half-open instants; an endpoint without a window is one slice. A part has the time of its whole, if that has one. */
export type SliceBounds =
  | { dimension: "TIME"; time: { from: Date; to: Date } }
  | { dimension: "PART"; time: { from: Date; to: Date } | null; part: Part }
  | { dimension: "NONE" }
  /** Known ids from one up to another, or a list of ids by its hash. */
  | { dimension: "ID"; id: { from: string | null; to: string | null } | { list: string } };

export interface SliceHashes {
  /** For `ing_plan_slice.slice_spec`: the bounds and the budget. */
  sliceSpec: Record<string, unknown>;
  sliceSignatureHash: string;
  exprHash: string;
  /** What is local to the slice. The rest is the plan's snapshot, found by its fingerprint. */
  exprSnapshot: { bounds: WrittenBounds; initial: Position };
}

type WrittenBounds =
  | { dimension: "TIME"; time: { from: string; to: string } }
  | { dimension: "PART"; time?: { from: string; to: string }; part: Part }
  | Extract<SliceBounds, { dimension: "NONE" | "ID" }>;

/** Of the whole snapshot. */
export function specFingerprintOf(snapshot: Snapshot): string {
  return fingerprint(snapshot);
}

/** Of the part that makes requests and reads answers: the same for all operations, so that an update knows what was read otherwise. */
export function exprProtoHashOf(snapshot: Snapshot): string {
  const { schemaVersion, compilerVersion, provenanceCode, endpointName, spec, detail, params } = snapshot;
  return fingerprint({
    schemaVersion,
    compilerVersion,
    provenanceCode,
    endpointName,
    operation: "HARVEST",
    params,
    spec: protoOf(spec),
    ...(detail ? { detail: { endpointName: detail.endpointName, ...protoOf(detail) } } : {}),
  });
}

export function sliceOf(
  { snapshot, exprProtoHash }: { snapshot: Snapshot; exprProtoHash: string },
  bounds: SliceBounds,
): SliceHashes {
  const written = writtenBounds(bounds);
  const exprSnapshot = { bounds: written, initial: firstPosition(snapshot.spec) };
  return {
    sliceSpec: { ...written, budget: snapshot.spec.budget },
    sliceSignatureHash: fingerprint({ exprProtoHash, bounds: written }),
    exprHash: fingerprint({ exprProtoHash, ...exprSnapshot }),
    exprSnapshot,
  };
}

function protoOf(spec: EndpointSpec): object {
  const { enumerator, auth, pagination, response, params, expr, outputFields, classifier, window, slicing } = spec;
  const { method, baseUrl, path, headers, query, form, json } = spec.http;
  return {
    enumerator,
    http: {
      method,
      baseUrl,
      path,
      headers,
      query,
      ...(form === undefined ? {} : { form }),
      ...(json === undefined ? {} : { json }),
    },
    auth,
    pagination,
    response,
    params,
    expr,
    outputFields,
    classifier,
    ...(window
      ? {
          window: {
            granularityMs: window.granularityMs,
            format: window.format,
            timezone: window.timezone,
            boundaryPolicy: window.boundaryPolicy,
            watermarkKey: window.watermarkKey,
          },
        }
      : {}),
    ...(slicing ? { slicing } : {}),
  };
}

function writtenBounds(bounds: SliceBounds): WrittenBounds {
  const written = ({ from, to }: { from: Date; to: Date }) => ({ from: from.toISOString(), to: to.toISOString() });
  switch (bounds.dimension) {
    case "NONE":
    case "ID":
      return bounds;
    case "TIME":
      return { dimension: "TIME", time: written(bounds.time) };
    case "PART": {
      const { time, part } = bounds;
      return { dimension: "PART", ...(time ? { time: written(time) } : {}), part };
    }
  }
}
