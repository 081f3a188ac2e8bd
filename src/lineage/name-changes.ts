/**
 * Writes down what events tell of names themselves (drops, renames, full lists) and brings the graph in line with it.
 *
 * In order, that is easy: a drop takes the asset away, a rename moves it. When newer events under the same names were
 * applied before, they were taken for talk of another asset; then the assets concerned are wiped, and all that was ever
 * told under their names is returned, to be merged once more now that more is known. The same happens when it turns out that
 * a rename that an engine reported has failed, or has not (reported-renames.ts).
 */
import type { Queryable } from "../kernel/data/db.ts";
import { writeAliases } from "./alias-changes.ts";
import type { Attributes, EndingClaim } from "./claims.ts";
import { isoOf } from "./micros.ts";
import { createNameHistory } from "./name-history.ts";
import { type AssetName, keyOf, type Name, ownName, parentOf, rebase } from "./names.ts";
import { type JudgedRename, judgeRenames } from "./reported-renames.ts";
import { throughAliases } from "./resolve.ts";
import { cutEdges, deleteNodes, type EdgeKey, moveNodes, nodesBelow, nodesByKey, wipeNodes } from "./store/graph.ts";
import { addEndings, contestedRenames, endingId, hasReportedRenames, type NewEnding } from "./store/name-history.ts";
import { rememberTimes, setInFull, tellingsNaming } from "./store/tellings.ts";
import { allTellingsNaming, connectedKeys, subjectOf, type TimedTelling, tablesIn } from "./timed-tellings.ts";
import { wordsOf } from "./words.ts";

/** An asset with all that is known of it. */
export interface ChangedAsset {
  id: string;
  name: AssetName;
  attributes: Attributes;
}

export interface NameChanges {
  /** To be merged beside what has just arrived. */
  again: TimedTelling[];
  /** Nodes whose name, or being there at all, has changed. */
  nodes: string[];
  /** Those of them that have another name now. */
  renamed: ChangedAsset[];
  edges: EdgeKey[];
  /** Reported renames that turn out not to have happened. */
  doubted: JudgedRename[];
}

interface TimedEnding extends EndingClaim {
  at: number;
  telling: string;
  /** Of a table that a full sync has listed: the columns that it has, and no others. */
  columns?: readonly string[];
}

export async function changeNames(
  tx: Queryable,
  tenantId: string,
  told: readonly TimedTelling[],
): Promise<NameChanges> {
  const changes: NameChanges = { again: [], nodes: [], renamed: [], edges: [], doubted: [] };
  const unsettled = await writeAliases(tx, tenantId, told);
  const endings = told.flatMap((one) => [...endingsIn(one), ...listsIn(one)]);
  const { fresh, confirmed } = await writeEndings(tx, tenantId, endings);
  for (const key of confirmed) unsettled.add(key);
  const doubted = await judge(tx, tenantId, { told, fresh, unsettled }, changes);
  const contested = await contestedMoments(tx, tenantId, fresh);
  for (const ending of fresh) {
    const subjects = ending.to ? [ending.name, ending.to] : [ending.name];
    const keys = await concerned(tx, tenantId, subjects.map(subjectOf).map(keyOf));
    const tellings = await tellingsNaming(tx, tenantId, keys);
    await setInFull(
      tx,
      tenantId,
      tellings.map(({ telling }) => telling),
      true,
    );
    const isUnsettled = contested.has(momentOf(ending)) || tellings.some((one) => isAfter(one, ending));
    if (ending.to) {
      // Events do not stay for ever, and what was told before a rename was told of another asset than what is told after it.
      await rememberTimes(
        tx,
        tenantId,
        tellings.map(({ telling }) => telling),
        isoOf(ending.at),
      );
      if (doubted.has(renameId(ending))) continue;
      await carryOver(tx, tenantId, ending.name as AssetName, ending.to, changes);
    } else await takeAway(tx, tenantId, ending, changes);
    if (isUnsettled) for (const key of keys) unsettled.add(key);
  }
  if (unsettled.size > 0) await startOver(tx, tenantId, [...unsettled], changes);
  return changes;
}

/**
 * Looks at reported renames again, if something was told now of the time before one of them. Answers the ids of those that do
 * not count; where one counts that did not before, or the other way round, its tables are unsettled.
 */
async function judge(
  tx: Queryable,
  tenantId: string,
  { told, fresh, unsettled }: { told: readonly TimedTelling[]; fresh: readonly TimedEnding[]; unsettled: Set<string> },
  changes: NameChanges,
): Promise<Set<string>> {
  // Another name of a table may be told of at any time, and holds for all times.
  const since = unsettled.size > 0 ? 0 : Math.min(...told.map(({ at }) => at));
  if (!(await hasReportedRenames(tx, tenantId, since))) return new Set();
  const named = told.flatMap(({ claims }) => [...tablesIn(claims), ...claims.mentions]).map(keyOf);
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

/** The renames of which only one can hold: everything that was told decides where to. */
async function contestedMoments(
  tx: Queryable,
  tenantId: string,
  endings: readonly TimedEnding[],
): Promise<Set<string>> {
  const keys = endings.filter(({ to }) => to).map(({ name }) => keyOf(name));
  return new Set((await contestedRenames(tx, tenantId, keys)).map(({ key, at }) => `${key} ${at}`));
}

const momentOf = ({ name, at }: TimedEnding): string => `${keyOf(name)} ${at}`;

/** The keys under which something may have been told of these, or of what lies below them: it may go by other names there. */
async function concerned(tx: Queryable, tenantId: string, subjects: readonly string[]): Promise<string[]> {
  const keys = await connectedKeys(tx, tenantId, subjects);
  const rows = await nodesByKey(tx, tenantId, keys);
  const parents = rows.filter(({ kind }) => kind === "SCHEMA" || kind === "CATALOG").map(({ id }) => id);
  const below = (await nodesBelow(tx, tenantId, parents)).filter(({ kind }) => kind !== "COLUMN");
  return connectedKeys(tx, tenantId, [...keys, ...below.map(({ key }) => key)]);
}

/** What others tell of the very moment of an ending is told of what came after it. */
function isAfter({ telling, last_at }: { telling: string; last_at: string }, ending: TimedEnding): boolean {
  return Number(last_at) > ending.at || (Number(last_at) === ending.at && telling !== ending.telling);
}

function endingsIn({ at, telling, claims }: TimedTelling): TimedEnding[] {
  return claims.endings.map((ending) => ({ ...ending, at, telling }));
}

/** A full sync lists all columns of a table. Those that it leaves out are gone. */
function listsIn({ at, telling, claims, baseline }: TimedTelling): TimedEnding[] {
  if (!baseline) return [];
  const columns = new Map<string, string[]>();
  for (const { name } of claims.nodes) {
    if (name.kind !== "COLUMN") continue;
    const table = keyOf(parentOf(name) as AssetName);
    columns.set(table, [...(columns.get(table) ?? []), ownName(name)]);
  }
  return claims.nodes.flatMap(({ name }) => {
    const listed = name.kind === "TABLE" ? columns.get(keyOf(name)) : undefined;
    return listed ? [{ name, at, telling, columns: listed }] : [];
  });
}

interface WrittenEndings {
  /** Those that were not known, in the order of time, under the names that their tables go by. */
  fresh: TimedEnding[];
  /** The keys of names of which an engine has reported what is now known to be so. */
  confirmed: string[];
}

async function writeEndings(tx: Queryable, tenantId: string, endings: readonly TimedEnding[]): Promise<WrittenEndings> {
  if (endings.length === 0) return { fresh: [], confirmed: [] };
  const { load, aliases } = createNameHistory(tx, tenantId);
  await load(endings.flatMap(({ name, to }) => (to ? [name, to] : [name])));
  const named = endings.map((ending): TimedEnding => {
    const settled = { ...ending, name: throughAliases(ending.name, aliases) };
    return ending.to ? { ...settled, to: throughAliases(ending.to, aliases) } : settled;
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

async function takeAway(
  tx: Queryable,
  tenantId: string,
  { name, columns }: TimedEnding,
  changes: NameChanges,
): Promise<void> {
  if (name.kind === "LINK") return untag(tx, tenantId, name.path, changes);
  const rows = await nodesByKey(tx, tenantId, [keyOf(name)]);
  const ids = rows.map(({ id }) => id);
  if (!columns) return wipe(tx, tenantId, ids, changes);
  const listed = new Set(columns);
  const others = (await nodesBelow(tx, tenantId, ids)).filter(({ path }) => !listed.has(path.at(-1) ?? ""));
  await wipe(
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
  if (from && to) changes.edges.push(...(await cutEdges(tx, tenantId, [{ src: from.id, kind, dst: to.id }])));
}

async function wipe(tx: Queryable, tenantId: string, ids: readonly string[], changes: NameChanges): Promise<void> {
  const below = await nodesBelow(tx, tenantId, ids);
  const all = [...ids, ...below.map(({ id }) => id)];
  changes.edges.push(...(await wipeNodes(tx, tenantId, all)));
  changes.nodes.push(...all);
}

/** The asset takes its new name, with all that belongs to it. Whatever bore that name until then makes room. */
async function carryOver(
  tx: Queryable,
  tenantId: string,
  from: AssetName,
  to: AssetName,
  changes: NameChanges,
): Promise<void> {
  const taken = [to, ...placesTaken(from, to)].map(keyOf);
  const rows = await nodesByKey(tx, tenantId, [keyOf(from), ...taken, keyOf(parentOf(to) ?? to)]);
  const moving = rows.find(({ key }) => key === keyOf(from));
  for (const inTheWay of rows.filter(({ key }) => taken.includes(key))) {
    await wipe(tx, tenantId, [inTheWay.id], changes);
    const below = await nodesBelow(tx, tenantId, [inTheWay.id]);
    await deleteNodes(
      tx,
      tenantId,
      below.map(({ id }) => id),
    );
    await deleteNodes(tx, tenantId, [inTheWay.id]);
  }
  if (!moving) return;
  // A column stays with its table, which is renamed too if the column is in another one from now on.
  const parent = moving.kind === "COLUMN" ? undefined : rows.find(({ key }) => key === keyOf(parentOf(to) ?? to));
  const below = await nodesBelow(tx, tenantId, [moving.id]);
  const moved = [moving, ...below].map((row) => {
    const name = rebase({ kind: row.kind, path: row.path }, from, to) as AssetName;
    // A table that moves to a schema nobody has heard of yet stays where it is until something is told of it there.
    const parentId = row.id === moving.id ? (parent?.id ?? row.parent_id) : row.parent_id;
    const words = wordsOf(name, row.attributes);
    if (!row.gone) changes.renamed.push({ id: row.id, name, attributes: row.attributes });
    return { id: row.id, key: keyOf(name), path: name.path, name: ownName(name), parent_id: parentId, words };
  });
  await moveNodes(tx, tenantId, moved);
  changes.nodes.push(...moved.map(({ id }) => id));
}

/** Wipes what goes by these names, and reads again what was told under them. */
async function startOver(
  tx: Queryable,
  tenantId: string,
  subjects: readonly string[],
  changes: NameChanges,
): Promise<void> {
  const keys = await concerned(tx, tenantId, subjects);
  const rows = await nodesByKey(tx, tenantId, keys);
  await wipe(
    tx,
    tenantId,
    rows.map(({ id }) => id),
    changes,
  );
  changes.again.push(...(await allTellingsNaming(tx, tenantId, keys)));
}
