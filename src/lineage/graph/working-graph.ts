/**
 * The part of a tenant's graph that a transaction changes: assertions are merged into it in memory, in any order, and the
 * changes are then written in a few statements.
 *
 * attributes.ts decides which value of an attribute holds, mostly by time. A repeated assertion is not merged again, so the
 * times here may be too old. Where two assertions disagree, the asset is in dispute: every assertion about it has to be
 * merged before the working graph is right.
 */

import type { Queryable } from "../../kernel/data/db.ts";
import { nodesByKey } from "../store/graph.ts";
import { hashRank, outranks, setAttribute, setMember, textOf, type Verdict } from "./attributes.ts";
import {
  type AttributeValue,
  type Facts,
  type NodeFact,
  type OwnedEdgeKind,
  RANK,
  type Rank,
  type TagFact,
} from "./facts.ts";
import { createNameHistory } from "./name-history.ts";
import { type AssetName, keyOf, type LinkName, linkName, selfAndParents } from "./names.ts";
import { namesIn, subjectOf, type TimedAssertion } from "./timed-assertions.ts";

export interface WorkingAsset {
  /** Null until it is written for the first time. */
  id: string | null;
  name: AssetName;
  key: string;
  attributes: Record<string, AttributeValue>;
  times: Record<string, number>;
  contested: boolean;
  /** Not in the graph, or no longer. */
  absent: boolean;
  changed: boolean;
}

export interface WorkingEdge {
  kind: string;
  from: WorkingAsset;
  to: WorkingAsset;
  transformations: readonly string[];
  at: number;
}

/** An attribute's value in one assertion, compared with the graph once everything is merged. */
interface AssertedValue {
  asset: WorkingAsset;
  attribute: string;
  text: string;
  rank: Rank;
}

export interface WorkingGraph {
  merge(assertions: readonly TimedAssertion[]): Promise<void>;
  /** The assets in dispute since the last call, and their subjects. */
  takeDisputed(): { subjects: AssetName[]; assets: ReadonlySet<WorkingAsset> };
  assets(): Iterable<WorkingAsset>;
  edges(): Iterable<WorkingEdge>;
  /** Edges that replace all others of their kind that leave the same asset. */
  owned(): Iterable<{ owner: WorkingAsset; kind: OwnedEdgeKind; to: readonly WorkingAsset[]; at: number }>;
  /** For each merged assertion, whether it is settled: the graph agrees with it, and still would after another event of it. */
  verdicts(): Map<string, boolean>;
  /** The statement or job of each assertion. */
  processes(): Map<string, WorkingAsset>;
}

/** Attributes that differ from producer to producer: the lesser text is kept, so they never cause a dispute. */
const UNDISPUTED = new Set(["metalake", "producer"]);
/** Among the times of an asset: no attribute is named like this. */
const STANDING = "(standing)";
const FOREVER = Number.MAX_SAFE_INTEGER;

export function createWorkingGraph(tx: Queryable, tenantId: string): WorkingGraph {
  const history = createNameHistory(tx, tenantId);
  const assets = new Map<string, WorkingAsset>();
  const edges = new Map<string, WorkingEdge>();
  const owned = new Map<
    string,
    { owner: WorkingAsset; kind: OwnedEdgeKind; to: readonly WorkingAsset[]; at: number }
  >();
  const assertedValues = new Map<string, AssertedValue[]>();
  const outdated = new Set<string>();
  const processes = new Map<string, WorkingAsset>();
  let disputed = new Map<string, AssetName>();
  let inDispute = new Set<WorkingAsset>();
  const settled = new Set<string>();

  async function load(names: Iterable<AssetName>): Promise<void> {
    const missing = new Map<string, AssetName>();
    for (const name of names) {
      for (const one of selfAndParents(name) as AssetName[]) {
        const key = keyOf(one);
        if (!assets.has(key)) missing.set(key, one);
      }
    }
    for (const row of await nodesByKey(tx, tenantId, [...missing.keys()])) {
      const name: AssetName = { kind: row.kind, path: row.path };
      assets.set(row.key, {
        id: row.id,
        name,
        key: row.key,
        attributes: { ...row.attributes },
        times: { ...row.times },
        contested: row.contested || hasRightTimes(name),
        absent: row.gone,
        changed: false,
      });
    }
    for (const [key, name] of missing) {
      if (assets.has(key)) continue;
      const blank = { attributes: {}, times: {}, contested: hasRightTimes(name), absent: true, changed: false };
      assets.set(key, { ...blank, id: null, name, key });
    }
  }

  /** The asset exists, and so does everything above it. */
  function ensure(name: AssetName, at: number): WorkingAsset {
    for (const one of selfAndParents(name) as AssetName[]) {
      const parent = assetOf(one);
      if (parent.absent) parent.changed = true;
      parent.absent = false;
    }
    const asset = assetOf(name);
    // Asserted itself, not only as the parent of something: it stays when nothing is left below it.
    if (asset.times[STANDING] === undefined) {
      asset.times[STANDING] = at;
      asset.changed = true;
    }
    return asset;
  }

  function assetOf(name: AssetName): WorkingAsset {
    const asset = assets.get(keyOf(name));
    if (!asset) throw new Error(`${name.kind} ${name.path.join(".")} was not loaded`);
    return asset;
  }

  function set(asset: WorkingAsset, fact: NodeFact, at: number, asserted: AssertedValue[]): void {
    const { attributes, members = [], rank = RANK.reader } = fact;
    for (const [attribute, value] of Object.entries(attributes)) {
      if (UNDISPUTED.has(attribute)) {
        keepLesser(asset, attribute, value, textOf(value), at);
        continue;
      }
      asserted.push({ asset, attribute, text: textOf(value), rank });
      // A newer time alone is not worth a write unless the asset is contested: a dispute reads the right times.
      const keepsTimes = asset.contested || isSettled(asset);
      note(asset, setAttribute(asset, attribute, value, { at, rank, keepsTimes }));
    }
    for (const { attribute, member, value } of members) note(asset, setMember(asset, [attribute, member], value, at));
  }

  function note(asset: WorkingAsset, { changed, disputed: isDisputed }: Verdict): void {
    if (isDisputed) dispute(asset);
    if (changed) asset.changed = true;
  }

  /** Every assertion about it is merged, so its times are right. */
  function isSettled({ name }: WorkingAsset): boolean {
    return settled.size > 0 && settled.has(keyOf(subjectOf(name)));
  }

  function keepLesser(asset: WorkingAsset, attribute: string, value: AttributeValue, text: string, at: number): void {
    if (asset.times[attribute] !== undefined && textOf(asset.attributes[attribute]) <= text) return;
    asset.times[attribute] = at;
    asset.attributes[attribute] = value;
    asset.changed = true;
  }

  /** Whether these edges replace the present ones. Of two lists of one moment, the one with the greater rank does. */
  function takes(asset: WorkingAsset, kind: OwnedEdgeKind, at: number, rank: number): boolean {
    const [since, former] = [asset.times[kind] ?? Number.NEGATIVE_INFINITY, asset.times[`(${kind})`] ?? 0];
    if (since > at || (since === at && former > rank)) return false;
    if (since !== at || former !== rank) {
      asset.times[kind] = at;
      asset.times[`(${kind})`] = rank;
      asset.changed = true;
    }
    return true;
  }

  function dispute(asset: WorkingAsset): void {
    const subject = subjectOf(asset.name);
    const key = keyOf(subject);
    if (settled.has(key) || asset.contested) return;
    disputed.set(key, subject);
    inDispute.add(asset);
  }

  function mergeOne({ assertion, at, facts, baseline }: TimedAssertion): void {
    const asserted = assertedValues.get(assertion) ?? [];
    assertedValues.set(assertion, asserted);
    if (baseline || dependsOnWhen(facts)) outdated.add(assertion);
    const find = (name: AssetName): AssetName | undefined => {
      const now = history.resolve(name, at);
      if (!now || !sameName(now, history.resolve(name, FOREVER))) outdated.add(assertion);
      return now;
    };
    for (const node of facts.nodes) {
      const now = find(node.name);
      if (now) set(ensure(now, at), node, at, asserted);
    }
    for (const edge of facts.edges) {
      // Each end exists whether the other one does or not.
      const [from, to] = [edge.from, edge.to].map((name) => find(name)).map((now) => now && ensure(now, at));
      if (from && to) join(edge.kind, from, to, edge.transformations ?? [], at);
    }
    for (const tag of facts.tags) {
      const link = history.resolve(linkOf(tag), at);
      const [asset, target] = [tag.from, tag.to].map((name) => find(name)).map((now) => now && ensure(now, at));
      if (link && asset && target) join(tag.kind, asset, target, [], at);
    }
    for (const { owner, kind, to } of facts.owned) {
      const ends = to.flatMap((name) => find(name) ?? []).map((now) => ensure(now, at));
      const now = find(owner);
      if (!now) continue;
      const asset = ensure(now, at);
      if (!takes(asset, kind, at, rankOf(to))) continue;
      owned.set(`${asset.key} ${kind}`, { owner: asset, kind, to: ends, at });
    }
    if (facts.execution) {
      const now = find(facts.execution.process);
      if (now) processes.set(assertion, ensure(now, at));
    }
  }

  function join(
    kind: string,
    from: WorkingAsset,
    to: WorkingAsset,
    transformations: readonly string[],
    at: number,
  ): void {
    const id = `${from.key} ${kind} ${to.key}`;
    const known = edges.get(id);
    const all = known ? [...new Set([...known.transformations, ...transformations])].sort() : transformations;
    edges.set(id, { kind, from, to, transformations: all, at: Math.min(at, known?.at ?? at) });
  }

  return {
    async merge(assertions) {
      if (assertions.length === 0) return;
      const named = assertions.flatMap(({ facts }) => namesIn(facts));
      await history.load([...named, ...assertions.flatMap(({ facts }) => facts.tags.map(linkOf))]);
      // Whatever a name resolves to, at any time, the history has reached.
      await load([...named, ...history.reached()]);
      for (const one of assertions) mergeOne(one);
    },
    takeDisputed() {
      const taken = { subjects: [...disputed.values()], assets: inDispute };
      for (const key of disputed.keys()) settled.add(key);
      disputed = new Map();
      inDispute = new Set();
      return taken;
    },
    assets: () => assets.values(),
    edges: () => edges.values(),
    owned: () => owned.values(),
    verdicts: () =>
      new Map(
        [...assertedValues].map(([assertion, asserted]) => [
          assertion,
          !outdated.has(assertion) &&
            asserted.every(
              ({ asset, attribute, text, rank }) =>
                outranks(asset, attribute, rank) || (!asset.contested && textOf(asset.attributes[attribute]) === text),
            ),
        ]),
      ),
    processes: () => processes,
  };
}

/**
 * Nearly every assertion names something below a catalog or schema, so a dispute about one would read all of them again. The
 * few events about a catalog or schema itself are applied each time instead, and their times are right.
 */
function hasRightTimes({ kind }: AssetName): boolean {
  return kind === "CATALOG" || kind === "SCHEMA";
}

function sameName(a: AssetName, b: AssetName | undefined): boolean {
  return a === b || (b !== undefined && keyOf(a) === keyOf(b));
}

/** Whether each event of the assertion has to be applied, because its time matters. */
function dependsOnWhen({ endings, tags, owned, nodes }: Facts): boolean {
  return endings.length + tags.length + owned.length > 0 || nodes.some(({ members }) => members !== undefined);
}

function rankOf(names: readonly AssetName[]): number {
  return hashRank(names.map(keyOf).sort().join());
}

function linkOf({ from, kind, to }: TagFact): LinkName {
  return linkName(from, kind, to.path[0] ?? "");
}
