/**
 * The time line of a namespace: which time is harvested, which is missing and why, and what is under way. Where slices overlap, the
 * best that was reached counts, as it does for the watermark.
 */
import type { Db } from "../../kernel/data/db.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { closedUntil } from "../plan/window.ts";
import { type CoverKind, type CoverRow, coverOf, type NamespaceRow, namespacesOf } from "../store/cursors/coverage.ts";

/** `none`: no plan has asked for it. */
export type StretchKind = CoverKind | "none";
export interface Stretch {
  kind: StretchKind;
  from: Date;
  to: Date;
  planId: string | null;
  sliceId: number | null;
  reason: string | null;
}

export interface Coverage {
  row: NamespaceRow;
  closedUntil: Date;
  from: Date;
  to: Date;
  stretches: Stretch[];
  /** Some slices that are not complete were left out. */
  isCut: boolean;
}

const NAMESPACES_MAX = 50;
const SLICES_MAX = 2_000;
/** The best first. */
const RANK = ["complete", "accepted", "open", "gap"] as const satisfies readonly CoverKind[];

/** `windows` is how many windows before the watermark are shown. */
export async function readCoverage(
  { db, clock }: { db: Db; clock: Clock },
  source: string,
  windows: number,
): Promise<Coverage[]> {
  const now = new Date(clock.now());
  const namespaces = (await namespacesOf(db, source, NAMESPACES_MAX)).map((row) => ({
    row,
    ...rangeOf(row, windows, now),
  }));
  const rows = await coverOf(
    db,
    namespaces.map(({ row, from }) => ({
      endpointId: row.endpoint_id,
      operation: row.operation_code,
      scope: row.namespace_scope_code,
      key: row.namespace_key,
      since: from,
      widestMs: 2 * row.window.maxWindowMs,
      watermark: row.watermark,
      slicesAfter: row.slices_after,
    })),
    SLICES_MAX,
  );
  return namespaces.map(({ row, from, to, closed }, index) => {
    const own = rows.filter(({ place }) => place === index + 1);
    const end = own.reduce((latest, one) => (one.to > latest ? one.to : latest), to);
    const isCut = own.filter(({ kind }) => kind !== "complete").length >= SLICES_MAX;
    return { row, closedUntil: closed, from, to: end, stretches: stretchesOf(own, from, end), isCut };
  });
}

function rangeOf({ operation_code, window, watermark, first_from }: NamespaceRow, windows: number, now: Date) {
  const closed = closedUntil(window, now);
  const first = first_from ?? watermark ?? closed;
  const at = watermark ?? first;
  // What is later belongs to HARVEST; slices that the backfill has there are shown anyway.
  if (operation_code === "BACKFILL") {
    return { closed, from: new Date(Math.max(first.getTime(), at.getTime() - windows * window.maxWindowMs)), to: at };
  }
  const from = new Date(Math.max(first.getTime(), at.getTime() - windows * window.maxWindowMs));
  return { closed, from, to: closed > at ? closed : at };
}

/** Without overlaps, in the order of time. Neighbours of the same slice, or of none, are one. */
export function stretchesOf(rows: readonly Omit<CoverRow, "place">[], from: Date, to: Date): Stretch[] {
  const [fromMs, toMs] = [from.getTime(), to.getTime()];
  const slices = rows
    .map((row) => ({ row, startMs: Math.max(row.from.getTime(), fromMs), endMs: Math.min(row.to.getTime(), toMs) }))
    .filter(({ startMs, endMs }) => startMs < endMs);
  const edges = new Set([fromMs, toMs, ...slices.flatMap(({ startMs, endMs }) => [startMs, endMs])]);
  const ordered = [...edges].toSorted((a, b) => a - b);
  const placeOf = new Map(ordered.map((edge, place) => [edge, place]));

  // The best slices take their places first, and of a kind the newest, which says why. `free` leads from a place that is taken
  // towards the next that is not, so each place is taken once, however many slices cover it.
  const taken: Omit<CoverRow, "place">[] = [];
  const free = ordered.map((_, place) => place);
  const freeFrom = (place: number): number => {
    let at = place;
    for (let next = free[at]; next !== undefined && next !== at; next = free[at]) {
      free[at] = free[next] ?? next;
      at = next;
    }
    return at;
  };
  for (const kind of RANK) {
    for (const { row, startMs, endMs } of slices.filter((one) => one.row.kind === kind).toReversed()) {
      const end = placeOf.get(endMs) ?? 0;
      for (let at = freeFrom(placeOf.get(startMs) ?? end); at < end; at = freeFrom(at)) {
        taken[at] = row;
        free[at] = at + 1;
      }
    }
  }

  const found: Stretch[] = [];
  for (const [place, startMs] of ordered.entries()) {
    const endMs = ordered[place + 1];
    if (endMs === undefined) break;
    const row = taken[place];
    const next: Stretch = {
      kind: row?.kind ?? "none",
      from: new Date(startMs),
      to: new Date(endMs),
      planId: row?.plan_id ?? null,
      sliceId: row?.slice_id ? Number(row.slice_id) : null,
      reason: row?.reason ?? null,
    };
    const last = found.at(-1);
    if (last && last.kind === next.kind && last.sliceId === next.sliceId) last.to = next.to;
    else found.push(next);
  }
  return found;
}
