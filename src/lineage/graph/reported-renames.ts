/**
 * Decides which of the renames that engines report have happened. Spark reports a failed `alter table a rename to b` as
 * complete, with an invented old name; applied, it would remove b.
 *
 * A reported rename counts if a table had the old name just before it, and none had the new one. Both follow from the
 * assertions of earlier times, so a rename is judged again whenever an older assertion about its tables arrives, and the
 * order of arrival does not matter. Renames from Gravitino, which owns the tables, are not judged.
 */
import type { Queryable } from "../../kernel/data/db.ts";
import { type ReportedRename, reportedRenames, setDoubts } from "../store/name-history.ts";
import { createNameHistory, type LoadedNameHistory } from "./name-history.ts";
import { type AssetName, keyOf } from "./names.ts";
import { type Doubt, resolve, resolveAliases } from "./resolve.ts";
import { allAssertionsNaming, connectedKeys, tablesIn } from "./timed-assertions.ts";

export interface JudgedRename {
  name: AssetName;
  to: AssetName;
  at: number;
  doubt: Doubt | null;
  /** Before it was judged. */
  was: Doubt | null;
}

/** That something named a table at a time, and so that the table existed. */
interface Use {
  table: AssetName;
  at: number;
}

/**
 * Judges the reported renames of names with these keys, if one of them is at `since` or later. Writes the changed judgements,
 * and returns all that were judged.
 */
export async function judgeRenames(
  tx: Queryable,
  tenantId: string,
  keys: Iterable<string>,
  since: number,
): Promise<JudgedRename[]> {
  const near = await reportedRenames(tx, tenantId, await connectedKeys(tx, tenantId, [...keys]));
  if (!near.some(({ at }) => Number(at) >= since)) return [];
  const ends = near.flatMap(({ key, to_key }) => [key, to_key]);
  const connected = await connectedKeys(tx, tenantId, ends);
  const renames = (await reportedRenames(tx, tenantId, connected)).map(renameOf);
  const assertions = await allAssertionsNaming(tx, tenantId, connected);
  const uses = assertions.flatMap(({ at, facts }) => tablesIn(facts).map((table): Use => ({ table, at })));
  const history = createNameHistory(tx, tenantId);
  await history.load([...uses.map(({ table }) => table), ...renames.flatMap(({ name, to }) => [name, to])]);

  // From the first to the last: whether one counts depends on those before it.
  for (const at of new Set(renames.map((rename) => rename.at))) {
    const existing = existingBefore(at, uses, history);
    const ofMoment = renames.filter((rename) => rename.at === at);
    for (const rename of ofMoment) {
      const [name, to] = [rename.name, rename.to].map((one) => keyOf(resolveAliases(one, history.aliases)));
      rename.doubt = !existing.has(name as string) ? "unknown" : existing.has(to as string) ? "taken" : null;
    }
    const rows = ofMoment.flatMap((rename) => rowsOf(rename, ofMoment, history));
    for (const row of rows) note(row, history);
    if (ofMoment.some(({ doubt, was }) => doubt !== was)) await setDoubts(tx, tenantId, rows);
  }
  return renames;
}

function renameOf({ path, to_path, at, doubt }: ReportedRename): JudgedRename {
  return {
    name: { kind: "TABLE", path },
    to: { kind: "TABLE", path: to_path },
    at: Number(at),
    doubt,
    was: doubt,
  };
}

/** The keys of the tables that existed just before a time. */
function existingBefore(before: number, uses: readonly Use[], history: LoadedNameHistory): Set<string> {
  const existing = new Set<string>();
  for (const { table, at } of uses) {
    const now = at < before ? resolve(table, at, history, before) : undefined;
    if (now) existing.add(keyOf(now));
  }
  return existing;
}

type Row = Parameters<typeof setDoubts>[2][number];

/** The end of the old name, and of what had the new one until then. */
function rowsOf(
  { name, to, at, doubt }: JudgedRename,
  ofMoment: readonly JudgedRename[],
  history: LoadedNameHistory,
): Row[] {
  const into = ofMoment.filter((rename) => keyOf(rename.to) === keyOf(to));
  const target = keyOf(resolveAliases(to, history.aliases));
  return [
    { key: keyOf(name), at, kind: "renamed", to_key: keyOf(to), doubt },
    // One rename that counts gives the name away, whatever becomes of others of that moment.
    { key: target, at, kind: "replaced", to_key: null, doubt: into.some((one) => one.doubt === null) ? null : doubt },
  ];
}

/** For the renames that are judged next. */
function note({ key, at, kind, to_key, doubt }: Row, { endings }: LoadedNameHistory): void {
  const ending = endings
    .get(key)
    ?.find((one) => one.at === at && one.kind === kind && (one.to ? keyOf(one.to) : null) === to_key);
  if (ending?.reported) ending.doubt = doubt;
}
