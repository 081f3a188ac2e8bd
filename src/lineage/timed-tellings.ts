/** A telling at a time: what is merged into the graph. Read from an event that has just arrived, or once more from the store. */
import type { Queryable } from "../kernel/data/db.ts";
import type { Claims } from "./claims.ts";
import { parseEvent } from "./event.ts";
import { claimsOf } from "./extract/index.ts";
import { isoOf } from "./micros.ts";
import { type AssetName, keyOf, lineOf, type Name, parentOf } from "./names.ts";
import { namesBeside, timesOfRenames } from "./store/name-history.ts";
import { latestWithin, readTellings, rememberedTimes, tellingsNaming } from "./store/tellings.ts";

export interface TimedTelling {
  telling: string;
  at: number;
  claims: Claims;
  baseline: boolean;
}

/** The asset that a name belongs to, as mentions have it: a column's table; anything else itself. */
export function subjectOf(name: Name): AssetName {
  const parent = name.kind === "COLUMN" || name.kind === "LINK" ? parentOf(name) : undefined;
  return parent ? subjectOf(parent) : (name as AssetName);
}

/** The keys that a telling is found by: of all that it names, and of all above that. */
export function mentionKeys(claims: Claims): string[] {
  const keys = new Set<string>();
  const add = (name: Name) => {
    for (const one of lineOf(subjectOf(name))) keys.add(keyOf(one));
  };
  for (const name of claims.mentions) add(name);
  for (const { name } of claims.nodes) add(name);
  for (const { from, to } of [...claims.edges, ...claims.tags]) for (const end of [from, to]) add(end);
  for (const { owner, to } of claims.owned) for (const end of [owner, ...to]) add(end);
  for (const { name, to } of claims.endings) for (const end of to ? [name, to] : [name]) add(end);
  for (const { name, to } of claims.aliases) for (const end of [name, to]) add(end);
  if (claims.execution) add(claims.execution.process);
  return [...keys];
}

/** The tables that claims say exist. */
export function tablesIn(claims: Claims): AssetName[] {
  return namesIn(claims)
    .map(subjectOf)
    .filter(({ kind }) => kind === "TABLE");
}

/** The names of everything that claims say exists. */
export function namesIn(claims: Claims): AssetName[] {
  return [
    ...claims.nodes.map(({ name }) => name),
    ...claims.edges.flatMap(({ from, to }) => [from, to]),
    ...claims.tags.flatMap(({ from, to }) => [from, to]),
    ...claims.owned.flatMap(({ owner, to }) => [owner, ...to]),
    ...(claims.execution ? [claims.execution.process] : []),
  ];
}

const READ_AT_ONCE = 200;
/** Before every event, and after: Postgres knows infinite times. */
const EVER = { since: "-infinity", before: "infinity" };

/** The keys of all names that have led to one of these, or that these have led to, themselves included. */
export async function connectedKeys(tx: Queryable, tenantId: string, keys: readonly string[]): Promise<string[]> {
  const all = new Set(keys);
  for (let frontier = [...all]; frontier.length > 0; ) {
    const found = await namesBeside(tx, tenantId, frontier);
    frontier = found.filter((key) => !all.has(key));
    for (const key of frontier) all.add(key);
  }
  return [...all];
}

/**
 * Everything that was ever told under these names. A telling counts once for each stretch between two renames, with the
 * latest time in it: what was told before within the stretch was told of the same asset, or of one that is gone since.
 */
export async function allTellingsNaming(
  tx: Queryable,
  tenantId: string,
  keys: readonly string[],
): Promise<TimedTelling[]> {
  return timedTellings(tx, tenantId, await tellingsNaming(tx, tenantId, keys), keys);
}

/** The same of these tellings alone; `keys` are those of all that they name, and of what is connected with it. */
export async function timedTellings(
  tx: Queryable,
  tenantId: string,
  naming: readonly { telling: string; last_at: string }[],
  keys: readonly string[],
): Promise<TimedTelling[]> {
  const bounds = await boundsOf(tx, tenantId, keys);
  const told: TimedTelling[] = [];
  for (let start = 0; start < naming.length; start += READ_AT_ONCE) {
    const some = naming.slice(start, start + READ_AT_ONCE);
    const ids = some.map(({ telling }) => telling);
    const times = new Map(some.map(({ telling, last_at }) => [telling, new Set([Number(last_at)])]));
    for (const { key, at } of await rememberedTimes(tx, tenantId, ids)) times.get(key)?.add(Number(at));
    if (bounds.length > 0) {
      const stretches = [EVER.since, ...bounds].map((since, index) => ({
        since,
        before: bounds[index] ?? EVER.before,
      }));
      for (const { telling, at } of await latestWithin(tx, tenantId, ids, stretches))
        times.get(telling)?.add(Number(at));
    }
    for (const { key, event, source, baseline } of await readTellings(tx, tenantId, ids)) {
      const claims = claimsOf(parseEvent(event), source);
      for (const at of times.get(key) ?? []) told.push({ telling: key, at, claims, baseline });
    }
  }
  return told;
}

async function boundsOf(tx: Queryable, tenantId: string, keys: readonly string[]): Promise<string[]> {
  return (await timesOfRenames(tx, tenantId, keys)).sort((a, b) => a - b).map(isoOf);
}
