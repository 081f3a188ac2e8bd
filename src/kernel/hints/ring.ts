/** The last hints that a process has received, so that a stream can continue where an earlier one ended. */

/** A kind of entity, and the id of one that changed, or `*` for all of the kind. */
export interface Change {
  kind: string;
  id: string;
  /** Unset for entities that belong to no tenant; `*` for a change that all tenants may see. */
  tenantId?: string | undefined;
}

/** The changes of one notification. */
export interface Batch {
  /** The id of the transaction that sent it. No two batches have the same. */
  rev: bigint;
  changes: readonly Change[];
}

export interface Ring {
  add(batch: Batch): void;
  /** The batches that arrived after the one with this rev; undefined if that one is not here. */
  after(rev: bigint): readonly Batch[] | undefined;
  /** The highest rev; 0 before the first batch. */
  highest(): bigint;
  /** Batches may have been missed. The highest rev stays until the next batch. */
  empty(): void;
}

/** At its busiest, a process sends 800 hints a second of a kind: this covers some seconds without a stream. */
const CHANGES_MAX = 5_000;

export function createRing(): Ring {
  let batches: Batch[] = [];
  let size = 0;
  let highest = 0n;

  return {
    add(batch) {
      // The first batch after a loss may come from another cluster, where revs are lower.
      highest = batches.length === 0 || batch.rev > highest ? batch.rev : highest;
      batches.push(batch);
      size += sizeOf(batch);
      while (size > CHANGES_MAX && batches.length > 1) size -= sizeOf(batches.shift());
    },
    after(rev) {
      const index = batches.findIndex((batch) => batch.rev === rev);
      return index < 0 ? undefined : batches.slice(index + 1);
    },
    highest: () => highest,
    empty() {
      batches = [];
      size = 0;
    },
  };
}

function sizeOf(batch: Batch | undefined): number {
  return Math.max(1, batch?.changes.length ?? 0);
}
