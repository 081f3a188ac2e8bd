/**
 * Writes aliases: other names of tables, from symlinks. A drop or rename of the alias is one of the table, and an asset that
 * exists under the alias is merged into the table.
 */
import type { Queryable } from "../../kernel/data/db.ts";
import { nodesByKey } from "../store/graph.ts";
import {
  addAliases,
  addEndings,
  type NewAlias,
  type NewEnding,
  type TakenEnding,
  takeEndings,
} from "../store/name-history.ts";
import { createNameHistory } from "./name-history.ts";
import { type AssetName, keyOf, rebase } from "./names.ts";
import { resolveAliases } from "./resolve.ts";
import { subjectOf, type TimedAssertion } from "./timed-assertions.ts";

/** Returns the keys of the tables whose assertions have to be merged again. */
export async function writeAliases(
  tx: Queryable,
  tenantId: string,
  assertions: readonly TimedAssertion[],
): Promise<Set<string>> {
  const earliest = earliestOf(assertions);
  const unsettled = new Set<string>();
  const rows = [...earliest.values()].map(({ alias }) => alias);
  const changed = await addAliases(tx, tenantId, rows);
  if (changed.length === 0) return unsettled;
  const names = new Map(changed.map(({ key }) => [key, (earliest.get(key) as Earliest).name]));
  const history = createNameHistory(tx, tenantId);
  await history.load([...names.values()]);
  const now = (name: AssetName) => resolveAliases(name, history.aliases);
  for (const key of await moveEndings(tx, tenantId, names, now)) unsettled.add(key);
  for (const { key } of await nodesByKey(tx, tenantId, [...names.keys()])) {
    unsettled.add(key).add(keyOf(now(names.get(key) as AssetName)));
  }
  for (const { key, former } of changed) if (former) unsettled.add(key).add(former);
  return unsettled;
}

interface Earliest {
  name: AssetName;
  alias: NewAlias;
}

function earliestOf(assertions: readonly TimedAssertion[]): Map<string, Earliest> {
  const earliest = new Map<string, Earliest>();
  for (const { at, facts } of assertions) {
    for (const { name, to } of facts.aliases) {
      const alias = { key: keyOf(name), to_path: to.path, to_key: keyOf(to), at };
      const known = earliest.get(alias.key)?.alias;
      if (alias.key !== alias.to_key && (!known || before(alias, known))) earliest.set(alias.key, { name, alias });
    }
  }
  return earliest;
}

function before(a: NewAlias, b: NewAlias): boolean {
  return a.at < b.at || (a.at === b.at && a.to_key < b.to_key);
}

/** Returns the keys of the tables that they were moved to. */
async function moveEndings(
  tx: Queryable,
  tenantId: string,
  names: ReadonlyMap<string, AssetName>,
  now: (name: AssetName) => AssetName,
): Promise<string[]> {
  const moving = [...names].filter(([key, name]) => keyOf(now(name)) !== key).map(([key]) => key);
  const moved = (await takeEndings(tx, tenantId, moving)).map((row) => {
    const from = names.get(row.subject) as AssetName;
    return underOtherName(row, from, now(from));
  });
  await addEndings(tx, tenantId, moved);
  return [...new Set(moved.map(({ subject }) => subject))];
}

function underOtherName(row: TakenEnding, from: AssetName, to: AssetName): NewEnding {
  const { kind, name_kind, path, to_path, columns, reported, doubt } = row;
  const name = rebase({ kind: name_kind, path }, from, to);
  // A column that was renamed is still one of the same table; a table that was renamed went to a name of its own.
  const target = to_path && ({ kind: name_kind, path: to_path } as AssetName);
  const renamed = target && name_kind === "COLUMN" ? (rebase(target, from, to) as AssetName) : target;
  return {
    key: keyOf(name),
    at: Number(row.at),
    kind,
    name_kind,
    path: name.path,
    to_path: renamed?.path ?? null,
    to_key: renamed ? keyOf(renamed) : null,
    columns,
    subject: keyOf(subjectOf(name)),
    reported,
    doubt,
  };
}
