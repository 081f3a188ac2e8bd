/** An assertion with a time, which is what is merged into the graph: of an event that arrives, or read again from the store. */
import type { Queryable } from "../../kernel/data/db.ts";
import { factsOf } from "../extract/index.ts";
import { parseEvent } from "../ingest/event.ts";
import { assertionsNaming, latestWithin, readAssertions, rememberedTimes } from "../store/assertions.ts";
import { namesBeside, timesOfRenames } from "../store/name-history.ts";
import type { Facts } from "./facts.ts";
import { isoOf } from "./micros.ts";
import { type AssetName, keyOf, type Name, parentOf, selfAndParents } from "./names.ts";

export interface TimedAssertion {
  assertion: string;
  at: number;
  facts: Facts;
  baseline: boolean;
}

/** The asset that a name belongs to, as mentions have it: a column's table; anything else itself. */
export function subjectOf(name: Name): AssetName {
  const parent = name.kind === "COLUMN" || name.kind === "LINK" ? parentOf(name) : undefined;
  return parent ? subjectOf(parent) : (name as AssetName);
}

/** The keys that an assertion is found by: of everything that it names, and of all parents of that. */
export function mentionKeys(facts: Facts): string[] {
  const keys = new Set<string>();
  const add = (name: Name) => {
    for (const one of selfAndParents(subjectOf(name))) keys.add(keyOf(one));
  };
  for (const name of facts.mentions) add(name);
  for (const { name } of facts.nodes) add(name);
  for (const { from, to } of [...facts.edges, ...facts.tags]) for (const end of [from, to]) add(end);
  for (const { owner, to } of facts.owned) for (const end of [owner, ...to]) add(end);
  for (const { name, to } of facts.endings) for (const end of to ? [name, to] : [name]) add(end);
  for (const { name, to } of facts.aliases) for (const end of [name, to]) add(end);
  if (facts.execution) add(facts.execution.process);
  return [...keys];
}

/** The tables that exist by these facts. */
export function tablesIn(facts: Facts): AssetName[] {
  return namesIn(facts)
    .map(subjectOf)
    .filter(({ kind }) => kind === "TABLE");
}

/** The names of everything that exists by these facts. */
export function namesIn(facts: Facts): AssetName[] {
  return [
    ...facts.nodes.map(({ name }) => name),
    ...facts.edges.flatMap(({ from, to }) => [from, to]),
    ...facts.tags.flatMap(({ from, to }) => [from, to]),
    ...facts.owned.flatMap(({ owner, to }) => [owner, ...to]),
    ...(facts.execution ? [facts.execution.process] : []),
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
 * All assertions that name one of these keys. An assertion counts once for each period between two renames, with its latest
 * time in it: an earlier time in the same period meant the same asset, or one that is gone since.
 */
export async function allAssertionsNaming(
  tx: Queryable,
  tenantId: string,
  keys: readonly string[],
): Promise<TimedAssertion[]> {
  return timedAssertions(tx, tenantId, await assertionsNaming(tx, tenantId, keys), keys);
}

/** The same for these assertions only; `keys` are those of all that they name, with what is connected to it. */
export async function timedAssertions(
  tx: Queryable,
  tenantId: string,
  naming: readonly { assertion: string; last_at: string }[],
  keys: readonly string[],
): Promise<TimedAssertion[]> {
  const bounds = await boundsOf(tx, tenantId, keys);
  const assertions: TimedAssertion[] = [];
  for (let start = 0; start < naming.length; start += READ_AT_ONCE) {
    const some = naming.slice(start, start + READ_AT_ONCE);
    const ids = some.map(({ assertion }) => assertion);
    const times = new Map(some.map(({ assertion, last_at }) => [assertion, new Set([Number(last_at)])]));
    for (const { key, at } of await rememberedTimes(tx, tenantId, ids)) times.get(key)?.add(Number(at));
    if (bounds.length > 0) {
      const periods = [EVER.since, ...bounds].map((since, index) => ({
        since,
        before: bounds[index] ?? EVER.before,
      }));
      for (const { assertion, at } of await latestWithin(tx, tenantId, ids, periods))
        times.get(assertion)?.add(Number(at));
    }
    for (const { key, event, source, baseline } of await readAssertions(tx, tenantId, ids)) {
      const facts = factsOf(parseEvent(event), source);
      for (const at of times.get(key) ?? []) assertions.push({ assertion: key, at, facts, baseline });
    }
  }
  return assertions;
}

async function boundsOf(tx: Queryable, tenantId: string, keys: readonly string[]): Promise<string[]> {
  return (await timesOfRenames(tx, tenantId, keys)).sort((a, b) => a - b).map(isoOf);
}
