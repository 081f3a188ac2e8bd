/**
 * What an update asks for again: the records of ids that a plan names or that are quarantined (signals), or known records that nothing
 * has checked for `staleAfter`, or that were read by another expression than that of today. The latter are planned as ranges of ids;
 * which of their records are due is seen when a slice runs. With them comes what another expression has quarantined.
 */
import type { Queryable, Tx } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import { fingerprint } from "../../kernel/json/canonical.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { quarantinedPart } from "../slice/parts.ts";
import { type SliceBounds, sliceOf } from "../spec/hashes.ts";
import { insertSlices, type Namespace, type NewSlice, type TaskFields } from "../store/plans/plans.ts";
import { quarantinedKeys } from "../store/records/quarantine-signals.ts";
import { cutRange, type KeyRange, openUpdate, setKeys, staleRanges } from "../store/records/updates.ts";
import { shownTime } from "./range.ts";
import { type Choice, type Nothing, namespaceOf, type Resolved } from "./request.ts";
import { type ToSlice, taskKey } from "./slices.ts";

/** A part of an update: a range of known ids, or ids, which may be those of what is quarantined. */
export type IdPart = { keys: KeyRange } | { ids: string[]; isQuarantined?: boolean };

/** Ids that a plan may name. */
export const IDS_MAX = 10_000;
const IDS_OF_SLICE = 1_000;
/** Slices of one plan, whatever `recordsMax` says. */
const SLICES_MAX = 1_000;

export async function chooseUpdate(reader: Queryable, resolved: Resolved, now: Date): Promise<Choice | Nothing> {
  const { request, snapshot, exprProtoHash, endpointId } = resolved;
  if (request.window) throw invalid("UPDATE asks for known records, not for a window: leave out `window`");
  if (request.ids && request.quarantined) throw invalid("Give either `ids` or `quarantined`, not both");
  if (request.ids) return { ...NO_WINDOW, strategy: "IDS", parts: partsOf([...new Set(request.ids)]) };
  const namespace = namespaceOf(resolved);
  const open = await openUpdate(reader, namespace);
  if (open !== undefined) return { nothing: `The plan ${open} is updating this endpoint`, closesAt: null };
  const signals = await quarantinedOf(reader, namespace, request.quarantined ? null : exprProtoHash);
  if (request.quarantined) {
    if (signals.parts.length > 0) return { ...NO_WINDOW, ...signals, strategy: "QUARANTINE" };
    return { nothing: "No record is quarantined whose id is known and that has not come since", closesAt: null };
  }
  const { staleAfterMs, sliceRecords, recordsMax } = snapshot.spec.update;
  const staleBefore = staleBeforeOf(staleAfterMs, now);
  const ranges = await staleRanges(reader, namespace, { staleBefore, exprProtoHash });
  const parts: IdPart[] = [];
  let covered = 0;
  for (const range of ranges) {
    let from: string | null = range.from;
    for (;;) {
      const limit = Math.min(sliceRecords, recordsMax - covered);
      if (limit <= 0 || parts.length >= SLICES_MAX) break;
      const { records, next } = await cutRange(reader, endpointId, { from, to: range.to }, limit);
      parts.push({ keys: { from, to: next ?? range.to } });
      covered += records;
      if (next === null) break;
      from = next;
    }
  }
  if (covered > 0) {
    const notes = [...signals.notes, `Of at most ${covered} known records, those that are due are asked for.`];
    // The ranges are last: the next plan goes on behind the last slice.
    return { ...NO_WINDOW, notes, strategy: "RANGE", parts: [...signals.parts, ...parts] };
  }
  if (signals.parts.length > 0) return { ...NO_WINDOW, ...signals, strategy: "QUARANTINE" };
  const since = staleBefore === null ? "with this definition" : `since ${shownTime(staleBefore)}`;
  return { nothing: `There is no record that was not checked ${since}`, closesAt: null };
}

const NO_WINDOW = { window: null, ranges: [], notes: [] };

/** Those that another expression than `exprProtoHash` has read; null: all. */
async function quarantinedOf(
  reader: Queryable,
  namespace: Namespace,
  exprProtoHash: string | null,
): Promise<{ parts: IdPart[]; notes: string[] }> {
  const found = await quarantinedKeys(reader, namespace, { exprProtoHash, limit: IDS_MAX + 1 });
  if (found.length === 0) return { parts: [], notes: [] };
  const ids = found.slice(0, IDS_MAX);
  const which = exprProtoHash === null ? "" : " by another definition";
  const rest = found.length > IDS_MAX ? "; the next plan takes the others" : "";
  const parts = partsOf(ids).map((part) => ({ ...part, isQuarantined: true }));
  return {
    parts,
    notes: [
      `${counted(ids.length, "record")} quarantined${which} ${ids.length === 1 ? "is" : "are"} asked for${rest}.`,
    ],
  };
}

/** What was checked before then is stale. */
export function staleBeforeOf(staleAfterMs: number | undefined, now: Date): Date | null {
  return staleAfterMs === undefined ? null : new Date(now.getTime() - staleAfterMs);
}

function partsOf(ids: readonly string[]): { ids: string[] }[] {
  const parts: { ids: string[] }[] = [];
  for (let start = 0; start < ids.length; start += IDS_OF_SLICE) {
    parts.push({ ids: ids.slice(start, start + IDS_OF_SLICE) });
  }
  return parts;
}

/** Inserts the slices of an update with their tasks; answers how many. */
export async function slicePartsIn(
  tx: Tx,
  plan: ToSlice & { planId: string; parts: readonly IdPart[] },
  task: TaskFields,
): Promise<number> {
  const { planId, parts } = plan;
  await insertSlices(
    tx,
    planId,
    task,
    parts.map((part, index) => sliceRow(plan, part, index + 1)),
  );
  const ranges = parts.flatMap((part, index) => ("keys" in part ? [{ ...part.keys, slice_no: index + 1 }] : []));
  await setKeys(tx, planId, ranges);
  return parts.length;
}

function sliceRow(plan: ToSlice, part: IdPart, sliceNo: number): NewSlice {
  const id = "keys" in part ? part.keys : { list: fingerprint(part.ids) };
  const bounds: SliceBounds = { dimension: "ID", id };
  const slice = sliceOf(plan, bounds);
  return {
    slice_no: sliceNo,
    window_from: null,
    window_to: null,
    part: "ids" in part && part.isQuarantined ? quarantinedPart(part.ids) : null,
    slice_spec: "ids" in part ? { ...slice.sliceSpec, ids: part.ids } : slice.sliceSpec,
    slice_signature_hash: slice.sliceSignatureHash,
    expr_hash: slice.exprHash,
    expr_snapshot: slice.exprSnapshot,
    idempotent_key: taskKey(plan, slice),
  };
}
