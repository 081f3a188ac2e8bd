/** Changes to the data of a running simulator: late arrivals, new versions and deletions. */

import { isRecord } from "../../kernel/json/is-record.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { cut, proseFrom, titleOf } from "./data-set.ts";
import type { Random } from "./random.ts";
import { asExpected, type ExpectedRecord, instantOf, type RecordStore, type SimulatedRecord } from "./records.ts";

export interface AddedRecord {
  /** Made up if it is not given. */
  id?: string | undefined;
  /** A day or a time, as all of these. */
  updated: string;
  /** Otherwise as `updated`. */
  created?: string | undefined;
  published?: string | undefined;
  title?: string | undefined;
}

export interface ChangedRecord {
  id: string;
  /** Otherwise now. */
  updated?: string | undefined;
  title?: string | undefined;
}

export interface Mutations {
  add(record: AddedRecord): ExpectedRecord;
  update(change: ChangedRecord): ExpectedRecord;
  remove(id: string, updated?: string): ExpectedRecord;
  /** `{ add: [...], update: [...], delete: [ids] }`, as they come over HTTP; answers the records that it touched. */
  apply(changes: Readonly<Record<string, unknown>>): ExpectedRecord[];
  /** A record with the date of some other one, for the fault of that name. */
  lateArrival(): void;
  /** A new version of some record, for the fault of that name. */
  updateSome(): void;
}

export function createMutations({
  store,
  idOf,
  random,
  clock,
  abstractBytes,
}: {
  store: RecordStore;
  idOf: (ordinal: number, created: number) => string;
  random: Random;
  clock: Clock;
  abstractBytes: number;
}): Mutations {
  const prose = proseFrom(random);
  let ordinal = store.size();

  function add({ id, updated, created, published, title }: AddedRecord): ExpectedRecord {
    const updatedMs = instantOf(updated);
    const createdMs = created === undefined ? updatedMs : instantOf(created);
    const number = ordinal;
    ordinal += 1;
    return asExpected(
      store.add({
        id: id ?? idOf(number, createdMs),
        title: title ?? titleOf(number, random),
        abstract: cut(prose, random, abstractBytes),
        created: createdMs,
        updated: updatedMs,
        indexed: updatedMs,
        published: published === undefined ? createdMs - (createdMs % DAY_MS) : instantOf(published),
      }),
    );
  }

  function update({ id, updated, title }: ChangedRecord): ExpectedRecord {
    const at = updated === undefined ? clock.now() : instantOf(updated);
    return asExpected(store.change(id, { updated: at, ...(title === undefined ? {} : { title }) }));
  }

  function remove(id: string, updated?: string): ExpectedRecord {
    const at = updated === undefined ? clock.now() : instantOf(updated);
    return asExpected(store.change(id, { updated: at, deleted: true }));
  }

  function some(): SimulatedRecord | undefined {
    const all = store.between("updated", {});
    return all[random.below(all.length)];
  }

  return {
    add,
    update,
    remove,
    apply(changes) {
      const { add: added = [], update: updated = [], delete: deleted = [], ...rest } = changes;
      const [unknown] = Object.keys(rest);
      if (unknown !== undefined) throw new RangeError(`\`${unknown}\` is none of add, update and delete.`);
      return [
        ...listOf("add", added).map((record) => add(checked(record) as unknown as AddedRecord)),
        ...listOf("update", updated).map((record) => update(checked(record) as unknown as ChangedRecord)),
        ...listOf("delete", deleted).map((id) => remove(String(id))),
      ];
    },
    lateArrival() {
      const like = some();
      if (like) add({ updated: new Date(like.updated).toISOString() });
    },
    updateSome() {
      const record = some();
      // One millisecond keeps the record in its place and in its day: only the content differs between two pages.
      if (record && !record.deleted) store.change(record.id, { updated: record.updated + 1 });
    },
  };
}

function listOf(name: string, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new RangeError(`\`${name}\` is not a list.`);
  return value;
}

const FIELDS = ["id", "created", "updated", "published", "title"];

function checked(value: unknown): Record<string, unknown> {
  if (!isRecord(value) || Object.values(value).some((field) => typeof field !== "string"))
    throw new RangeError("A record is an object whose fields are texts.");
  const unknown = Object.keys(value).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) throw new RangeError(`A record has no \`${unknown}\` here. Fields: ${FIELDS.join(", ")}.`);
  return value;
}
