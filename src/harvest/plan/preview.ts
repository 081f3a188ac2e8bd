/** What a plan would be: its first windows, and what is expected of them. It writes nothing, and asks the source nothing. */
import type { Queryable } from "../../kernel/data/db.ts";
import { PRIORITIES } from "../spec/snapshot.ts";
import { type Choice, type Draft, namespaceOf, type Resolved } from "./request.ts";
import { sizesOf } from "./sizes.ts";
import { type Piece, windowsOf } from "./slices.ts";

/** Windows of a preview. */
const PREVIEW_MAX = 1_000;

export async function previewOf(
  reader: Queryable,
  resolved: Resolved,
  choice: Choice,
  plannedAt: Date,
): Promise<Draft> {
  const { request, endpoint, snapshot, warnings } = resolved;
  const { source, operation, priority = PRIORITIES[operation] } = request;
  const { window, ranges, parts, notes } = choice;
  const sizes = await sizesOf(reader, snapshot, namespaceOf(resolved), ranges);
  const { estimate = null, widthMs } = sizes;
  const windows: Piece[] = [];
  let slices = parts?.length ?? 0;
  for (const piece of parts ? [] : windowsOf(snapshot, ranges, widthMs)) {
    slices += 1;
    if (slices <= PREVIEW_MAX) windows.push(piece);
  }
  const plan = { source, endpoint, operation, window, priority, plannedAt, slices, estimate, notes, warnings };
  return { ...plan, windows, sizes, snapshot };
}
