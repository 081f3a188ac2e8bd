/**
 * Sends a cursor back to an earlier time, so that what is behind it is harvested once more. A cursor otherwise only moves forward,
 * over complete slices; so a rewind begins its next generation, for which slices that were made before do not count. Records
 * that are there stay, and come again as unchanged.
 */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import type { Db } from "../../kernel/data/db.ts";
import { type DryRun, transact } from "../../kernel/data/dry-run.ts";
import { invalid } from "../../kernel/errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { type HarvestHints, harvestError } from "../catalogue.ts";
import { instantOf, inWholeUnits } from "../plan/window.ts";
import { listCursors } from "../store/cursors/cursor-reads.ts";
import { lockCursor } from "../store/cursors/cursors.ts";
import * as store from "../store/cursors/rewinds.ts";

export interface Rewound extends store.CursorOf {
  generation: number;
  from: Date;
  to: Date;
  /** Complete slices that will be harvested once more. */
  slices: number;
}

export interface Rewinds {
  rewind(cursor: store.CursorOf, to: string, reason: string, actor: Actor, options: DryRun): Promise<Rewound>;
  timeline(cursor: store.CursorOf, limit: number): Promise<store.TimelineRow[]>;
}

const CURSORS_MAX = 1_000;

export function createRewinds({ db, hints }: { db: Db; hints: HarvestHints }): Rewinds {
  async function unknown({ source, operation, namespace }: store.CursorOf) {
    const others = await listCursors(db, { source, operation: undefined }, CURSORS_MAX);
    const names = [...new Set(others.map(({ namespace_key }) => namespace_key))];
    const known = names.length === 0 ? " It has none yet." : ` Known: ${names.join(", ")}.`;
    const hint = didYouMean(namespace, names) || known;
    return harvestError("HARVEST_CURSOR_NOT_FOUND", { source, operation, namespace }, { hint });
  }

  return {
    async rewind(which, given, reason, actor, options) {
      if (which.operation !== "HARVEST") {
        throw invalid(
          "The field `operation`: only the cursor of HARVEST is sent back; plan a window of its own instead",
        );
      }
      const found = await store.findCursor(db, which);
      if (!found?.window) throw await unknown(which);
      const { window } = found;
      const instant = instantOf(given, window.timezone);
      if (!instant) {
        throw invalid(
          `The field \`to\`: \`${given}\` is neither a date like 2026-08-20 nor a time like 2026-08-20T00:00:00Z`,
        );
      }
      const to = inWholeUnits(window, { from: instant, to: instant }).from;
      return transact(db, options, async (tx) => {
        await lockCursor(tx, found);
        const cursor = await store.findCursor(tx, which);
        const from = cursor?.normalized_instant;
        if (!cursor || !from) throw await unknown(which);
        const slices = await store.countAgain(tx, cursor, to, from);
        const generation = await store.rewindCursor(tx, cursor, { from, to, reason, by: actor.caller.name });
        if (generation === undefined) {
          throw harvestError("HARVEST_CURSOR_BEHIND", { value: from.toISOString(), to: to.toISOString() });
        }
        const { source, operation, namespace } = which;
        const details = { operation, generation, from: from.toISOString(), to: to.toISOString(), reason };
        await audit(tx, actor, "cursor.rewind", `${source}/${namespace}`, details);
        hints.changed(tx, "cursor", `${source}/${namespace}`);
        return { ...which, generation, from, to, slices };
      });
    },

    timeline: (which, limit) => store.readTimeline(db, which, limit),
  };
}
