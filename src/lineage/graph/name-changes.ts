/**
 * Writes drops, renames and full lists of columns, and changes the graph accordingly.
 *
 * In the order of time, a drop removes the asset and a rename moves it. If newer events with the same names were applied
 * before, they were resolved to the wrong asset. Then the assets concerned are cleared, and all assertions that name them
 * are returned, to be merged again. The same happens when a rename that an engine reported turns out to have failed, or not
 * to have failed (reported-renames.ts).
 */
import type { Queryable } from "../../kernel/data/db.ts";
import { assertionsNaming, rememberTimes, setInFull } from "../store/assertions.ts";
import {
  clearNodes,
  deleteEdges,
  deleteNodes,
  type EdgeKey,
  moveNodes,
  nodesBelow,
  nodesByKey,
} from "../store/graph.ts";
import { addEndings, contestedRenames, endingId, hasReportedRenames, type NewEnding } from "../store/name-history.ts";
import { writeAliases } from "./alias-changes.ts";
import type { Attributes, EndingFact } from "./facts.ts";
import { isoOf } from "./micros.ts";
import { createNameHistory } from "./name-history.ts";
import { type AssetName, keyOf, type Name, ownName, parentOf, rebase } from "./names.ts";
import { type JudgedRename, judgeRenames } from "./reported-renames.ts";
import { resolveAliases } from "./resolve.ts";
import { allAssertionsNaming, connectedKeys, subjectOf, type TimedAssertion, tablesIn } from "./timed-assertions.ts";
import { wordsOf } from "./words.ts";

/** An asset with all that is known of it. */
export interface ChangedAsset {
  id: string;
  name: AssetName;
  attributes: Attributes;
}

export interface NameChanges {
  /** To be merged again, with the assertions that arrive now. */
  again: TimedAssertion[];
  /** Nodes that were renamed or removed. */
  nodes: string[];
  /** Those of them that were renamed. */
  renamed: ChangedAsset[];
  edges: EdgeKey[];
  /** Reported renames that turn out not to have happened. */
  doubted: JudgedRename[];
}

interface TimedEnding extends EndingFact {
  at: number;
  assertion: string;
  /** Of a table that a full sync has listed: the columns that it has, and no others. */
  columns?: readonly string[];
}

export async function changeNames(
  tx: Queryable,
  tenantId: string,
  assertions: readonly TimedAssertion[],
): Promise<NameChanges> {
  const changes: NameChanges = { again: [], nodes: [], renamed: [], edges: [], doubted: [] };
  const unsettled = await writeAliases(tx, tenantId, assertions);
  const endings = assertions.flatMap((one) => [...endingsIn(one), ...listsIn(one)]);
  const { fresh, confirmed } = await writeEndings(tx, tenantId, endings);
  for (const key of confirmed) unsettled.add(key);
  const doubted = await judge(tx, tenantId, { assertions, fresh, unsettled }, changes);
  const contested = await contestedMoments(tx, tenantId, fresh);
  for (const ending of fresh) {
    const subjects = ending.to ? [ending.name, ending.to] : [ending.name];
    const keys = await concerned(tx, tenantId, subjects.map(subjectOf).map(keyOf));
    const naming = await assertionsNaming(tx, tenantId, keys);
    const affected = naming.map(({ assertion }) => assertion);
    await setInFull(tx, tenantId, affected, true);
    const isUnsettled = contested.has(momentOf(ending)) || naming.some((one) => isAfter(one, ending));
    if (ending.to) {
      // Retention deletes events, and what was asserted before a rename meant another asset than what is asserted after it.
      await rememberTimes(tx, tenantId, affected, isoOf(ending.at));
      if (doubted.has(renameId(ending))) continue;
      await renameAsset(tx, tenantId, ending.name as AssetName, ending.to, changes);
    } else await dropAsset(tx, tenantId, ending, changes);
    if (isUnsettled) for (const key of keys) unsettled.add(key);
  }
  if (unsettled.size > 0) await clearAndReread(tx, tenantId, [...unsettled], changes);
  return changes;
}

/**
 * Judges reported renames again, if an assertion is older than one of them. Returns the ids of those that do not count; the
 * tables of a rename that counts now and did not before, or the other way round, are added to `unsettled`.
 */
async function judge(
  tx: Queryable,
  tenantId: string,
  {
    assertions,
    fresh,
    unsettled,
  }: { assertions: readonly TimedAssertion[]; fresh: readonly TimedEnding[]; unsettled: Set<string> },
  changes: NameChanges,
): Promise<Set<string>> {
  // An alias holds for all times, whenever it arrives.
  const since = unsettled.size > 0 ? 0 : Math.min(...assertions.map(({ at }) => at));
  if (!(await hasReportedRenames(tx, tenantId, since))) return new Set();
  const named = assertions.flatMap(({ facts }) => [...tablesIn(facts), ...facts.mentions]).map(keyOf);
  const ended = await concerned(
    tx,
    tenantId,
    fresh.map(({ name }) => keyOf(subjectOf(name))),
  );
  const judged = await judgeRenames(tx, tenantId, new Set([...unsettled, ...named, ...ended]), since);
  const isFresh = new Set(fresh.map(renameId));
  for (const rename of judged) {
    const isNew = isFresh.has(renameId(rename));
    const hasChanged = (rename.doubt === null) !== (rename.was === null);
    if (rename.doubt !== null && (isNew || hasChanged)) changes.doubted.push(rename);
    if (!isNew && hasChanged) unsettled.add(keyOf(rename.name)).add(keyOf(rename.to));
  }
  return new Set(judged.filter(({ doubt }) => doubt !== null).map(renameId));
}

const renameId = ({ name, to, at }: Pick<TimedEnding, "name" | "to" | "at">): string =>
  `${keyOf(name)} ${to ? keyOf(to) : ""} ${at}`;

/** The moments at which one name was renamed to several: all assertions decide which rename holds. */
async function contestedMoments(
  tx: Queryable,
  tenantId: string,
  endings: readonly TimedEnding[],
): Promise<Set<string>> {
  const keys = endings.filter(({ to }) => to).map(({ name }) => keyOf(name));
  return new Set((await contestedRenames(tx, tenantId, keys)).map(({ key, at }) => `${key} ${at}`));
}

const momentOf = ({ name, at }: TimedEnding): string => `${keyOf(name)} ${at}`;

/** The keys by which assertions may name these assets or anything below them: their own, and those of other names. */
async function concerned(tx: Queryable, tenantId: string, subjects: readonly string[]): Promise<string[]> {
  const keys = await connectedKeys(tx, tenantId, subjects);
  const rows = await nodesByKey(tx, tenantId, keys);
  const parents = rows.filter(({ kind }) => kind === "SCHEMA" || kind === "CATALOG").map(({ id }) => id);
  const below = (await nodesBelow(tx, tenantId, parents)).filter(({ kind }) => kind !== "COLUMN");
  return connectedKeys(tx, tenantId, [...keys, ...below.map(({ key }) => key)]);
}

/** An assertion of the same moment as the ending, from another event, is about what came after it. */
function isAfter({ assertion, last_at }: { assertion: string; last_at: string }, ending: TimedEnding): boolean {
  return Number(last_at) > ending.at || (Number(last_at) === ending.at && assertion !== ending.assertion);
}

function endingsIn({ at, assertion, facts }: TimedAssertion): TimedEnding[] {
  return facts.endings.map((ending) => ({ ...ending, at, assertion }));
}

/** A full sync lists all columns of a table. Others are dropped. */
function listsIn({ at, assertion, facts, baseline }: TimedAssertion): TimedEnding[] {
  if (!baseline) return [];
  const columns = new Map<string, string[]>();
  for (const { name } of facts.nodes) {
    if (name.kind !== "COLUMN") continue;
    const table = keyOf(parentOf(name) as AssetName);
    columns.set(table, [...(columns.get(table) ?? []), ownName(name)]);
  }
  return facts.nodes.flatMap(({ name }) => {
    const listed = name.kind === "TABLE" ? columns.get(keyOf(name)) : undefined;
    return listed ? [{ name, at, assertion, columns: listed }] : [];
  });
}

interface WrittenEndings {
  /** Those that were not known, in the order of time, with aliases resolved. */
  fresh: TimedEnding[];
  /** The keys of renames that an engine reported and the catalog has now confirmed. */
  confirmed: string[];
}

async function writeEndings(tx: Queryable, tenantId: string, endings: readonly TimedEnding[]): Promise<WrittenEndings> {
  if (endings.length === 0) return { fresh: [], confirmed: [] };
  const { load, aliases } = createNameHistory(tx, tenantId);
  await load(endings.flatMap(({ name, to }) => (to ? [name, to] : [name])));
  const named = endings.map((ending): TimedEnding => {
    const settled = { ...ending, name: resolveAliases(ending.name, aliases) };
    return ending.to ? { ...settled, to: resolveAliases(ending.to, aliases) } : settled;
  });
  const rows = await addEndings(tx, tenantId, named.flatMap(rowsOf));
  const added = new Set(rows.filter(({ inserted, kind }) => inserted || kind === "listed").map(endingId));
  const fresh = named.filter((ending) => rowsOf(ending).some((row) => added.has(endingId(row))));
  const changed = rows.filter((row) => !added.has(endingId(row)));
  const isReport = new Set(
    named
      .filter(({ reported }) => reported)
      .flatMap(rowsOf)
      .map(endingId),
  );
  return {
    // Of one moment, columns before their table: they are named as they were until then.
    fresh: fresh.sort((a, b) => a.at - b.at || b.name.path.length - a.name.path.length),
    confirmed: changed.filter((row) => !isReport.has(endingId(row))).map(({ key }) => key),
  };
}

function rowsOf({ name, to, at, columns, ...ending }: TimedEnding): NewEnding[] {
  const reported = ending.reported ?? false;
  const rowOf = (one: Name, kind: NewEnding["kind"]): NewEnding => ({
    key: keyOf(one),
    at,
    kind,
    name_kind: one.kind,
    path: one.path,
    to_path: null,
    to_key: null,
    columns: null,
    subject: keyOf(subjectOf(one)),
    reported,
    doubt: reported ? "unknown" : null,
  });
  if (columns) return [{ ...rowOf(name, "listed"), columns }];
  if (!to) return [rowOf(name, "dropped")];
  if (keyOf(to) === keyOf(name)) return [];
  const replaced = [to, ...placesTaken(name as AssetName, to)].map((one) => rowOf(one, "replaced"));
  return [{ ...rowOf(name, "renamed"), to_path: to.path, to_key: keyOf(to) }, ...replaced];
}

/** A column that is renamed together with its table takes its place in the table that is renamed, as well. */
function placesTaken(from: AssetName, to: AssetName): AssetName[] {
  const [table, renamed] = [parentOf(from), parentOf(to)];
  if (from.kind !== "COLUMN" || !table || !renamed || keyOf(table) === keyOf(renamed)) return [];
  return [rebase(to, renamed, table) as AssetName];
}

async function dropAsset(
  tx: Queryable,
  tenantId: string,
  { name, columns }: TimedEnding,
  changes: NameChanges,
): Promise<void> {
  if (name.kind === "LINK") return untag(tx, tenantId, name.path, changes);
  const rows = await nodesByKey(tx, tenantId, [keyOf(name)]);
  const ids = rows.map(({ id }) => id);
  if (!columns) return clear(tx, tenantId, ids, changes);
  const listed = new Set(columns);
  const others = (await nodesBelow(tx, tenantId, ids)).filter(({ path }) => !listed.has(path.at(-1) ?? ""));
  await clear(
    tx,
    tenantId,
    others.map(({ id }) => id),
    changes,
  );
}

async function untag(tx: Queryable, tenantId: string, path: readonly string[], changes: NameChanges): Promise<void> {
  const [kind = "", target = ""] = path.slice(-2);
  const asset = parentOf({ kind: "LINK", path }) as AssetName;
  const tag: AssetName = { kind: kind === "HAS_TAG" ? "TAG" : "VALUEDOMAIN", path: [target] };
  const rows = await nodesByKey(tx, tenantId, [keyOf(asset), keyOf(tag)]);
  const [from, to] = [asset, tag].map((name) => rows.find(({ key }) => key === keyOf(name)));
  if (from && to) changes.edges.push(...(await deleteEdges(tx, tenantId, [{ src: from.id, kind, dst: to.id }])));
}

async function clear(tx: Queryable, tenantId: string, ids: readonly string[], changes: NameChanges): Promise<void> {
  const below = await nodesBelow(tx, tenantId, ids);
  const all = [...ids, ...below.map(({ id }) => id)];
  changes.edges.push(...(await clearNodes(tx, tenantId, all)));
  changes.nodes.push(...all);
}

/** Renames the asset with everything below it. An asset that has the new name is deleted. */
async function renameAsset(
  tx: Queryable,
  tenantId: string,
  from: AssetName,
  to: AssetName,
  changes: NameChanges,
): Promise<void> {
  const taken = [to, ...placesTaken(from, to)].map(keyOf);
  const rows = await nodesByKey(tx, tenantId, [keyOf(from), ...taken, keyOf(parentOf(to) ?? to)]);
  const moving = rows.find(({ key }) => key === keyOf(from));
  for (const replaced of rows.filter(({ key }) => taken.includes(key))) {
    await clear(tx, tenantId, [replaced.id], changes);
    const below = await nodesBelow(tx, tenantId, [replaced.id]);
    await deleteNodes(
      tx,
      tenantId,
      below.map(({ id }) => id),
    );
    await deleteNodes(tx, tenantId, [replaced.id]);
  }
  if (!moving) return;
  // A column stays with its table, which is renamed too if the column is in another one from now on.
  const parent = moving.kind === "COLUMN" ? undefined : rows.find(({ key }) => key === keyOf(parentOf(to) ?? to));
  const below = await nodesBelow(tx, tenantId, [moving.id]);
  const moved = [moving, ...below].map((row) => {
    const name = rebase({ kind: row.kind, path: row.path }, from, to) as AssetName;
    // A table that moves to a schema that does not exist yet stays below its parent until an event names it there.
    const parentId = row.id === moving.id ? (parent?.id ?? row.parent_id) : row.parent_id;
    const words = wordsOf(name, row.attributes);
    if (!row.gone) changes.renamed.push({ id: row.id, name, attributes: row.attributes });
    return { id: row.id, key: keyOf(name), path: name.path, name: ownName(name), parent_id: parentId, words };
  });
  await moveNodes(tx, tenantId, moved);
  changes.nodes.push(...moved.map(({ id }) => id));
}

/** Clears the assets with these names, and reads all assertions that name them. */
async function clearAndReread(
  tx: Queryable,
  tenantId: string,
  subjects: readonly string[],
  changes: NameChanges,
): Promise<void> {
  const keys = await concerned(tx, tenantId, subjects);
  const rows = await nodesByKey(tx, tenantId, keys);
  await clear(
    tx,
    tenantId,
    rows.map(({ id }) => id),
    changes,
  );
  changes.again.push(...(await allAssertionsNaming(tx, tenantId, keys)));
}
