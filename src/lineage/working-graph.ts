/**
 * The part of a tenant's graph that is being worked on: tellings are merged into it in memory, in any order, and what has
 * changed is then written in a few statements, whatever their number.
 *
 * An attribute belongs to the newest event that sets it. A telling that says nothing new is not merged again when it is
 * told again, so its times here may be too old: where two tellings disagree, `disputed` names the asset, and everything that
 * was ever told of it has to be merged too before the working graph is right.
 */

import type { Queryable } from "../kernel/data/db.ts";
import { canonicalJson } from "../kernel/json/canonical.ts";
import type { Attributes, AttributeValue, Claims, OwnedEdgeKind, TagClaim } from "./claims.ts";
import { hashUuid } from "./hash-uuid.ts";
import { createNameHistory } from "./name-history.ts";
import { type AssetName, keyOf, type LinkName, lineOf, linkName, parentOf } from "./names.ts";
import { nodesByKey } from "./store/graph.ts";
import { namesIn, subjectOf, type TimedTelling } from "./timed-tellings.ts";

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

/** What one telling says of an attribute, to see afterwards whether the graph agrees. */
interface Assertion {
  asset: WorkingAsset;
  attribute: string;
  text: string;
}

export interface WorkingGraph {
  merge(told: readonly TimedTelling[]): Promise<void>;
  /** The assets that tellings have disagreed about since the last call, and the subjects that these belong to. */
  takeDisputed(): { subjects: AssetName[]; assets: ReadonlySet<WorkingAsset> };
  assets(): Iterable<WorkingAsset>;
  edges(): Iterable<WorkingEdge>;
  /** Edges that replace all others of their kind that leave the same asset. */
  owned(): Iterable<{ owner: WorkingAsset; kind: OwnedEdgeKind; to: readonly WorkingAsset[]; at: number }>;
  /** Tellings that were merged, and whether the graph says what they say, and would if they were told again now. */
  verdicts(): Map<string, boolean>;
  /** The statement or job of each telling. */
  processes(): Map<string, WorkingAsset>;
}

/** Set by every event that names the asset, and differently by each who does: of these the lesser text stays, for good. */
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
  const assertions = new Map<string, Assertion[]>();
  const outdated = new Set<string>();
  const processes = new Map<string, WorkingAsset>();
  let disputed = new Map<string, AssetName>();
  let inDispute = new Set<WorkingAsset>();
  const settled = new Set<string>();

  async function load(names: Iterable<AssetName>): Promise<void> {
    const missing = new Map<string, AssetName>();
    for (const name of names) {
      for (const one of lineOf(name) as AssetName[]) {
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

  /** It exists, and so does all above it. */
  function claim(name: AssetName): WorkingAsset {
    for (let at: AssetName | undefined = name; at; at = parentOf(at)) {
      const asset = assetOf(at);
      if (asset.absent) asset.changed = true;
      asset.absent = false;
    }
    return assetOf(name);
  }

  /** It was told of itself, and not only because of something below it: it stays when nothing is left below. */
  function standing(asset: WorkingAsset, at: number): WorkingAsset {
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

  function set(asset: WorkingAsset, attributes: Attributes, at: number, asserted: Assertion[]): void {
    for (const [attribute, value] of Object.entries(attributes)) {
      const text = textOf(value);
      if (UNDISPUTED.has(attribute)) {
        keepLesser(asset, attribute, value, text, at);
        continue;
      }
      asserted.push({ asset, attribute, text });
      const since = asset.times[attribute];
      const current = textOf(asset.attributes[attribute]);
      if (since !== undefined && text !== current) dispute(asset);
      // Two events of one moment: the greater text wins, in whatever order they come.
      if (since !== undefined && (since > at || (since === at && current >= text))) continue;
      // What is not contested is not worth a write for its time alone: a dispute finds the right one, and there it counts.
      if (since !== undefined && text === current && !asset.contested && !isSettled(asset)) continue;
      asset.times[attribute] = at;
      if (value === null) delete asset.attributes[attribute];
      else asset.attributes[attribute] = value;
      asset.changed = true;
    }
  }

  /** Everything that was told of it is being merged, or has been: from then on its times are the right ones. */
  function isSettled({ name }: WorkingAsset): boolean {
    return settled.size > 0 && settled.has(keyOf(subjectOf(name)));
  }

  function keepLesser(asset: WorkingAsset, attribute: string, value: AttributeValue, text: string, at: number): void {
    if (asset.times[attribute] !== undefined && textOf(asset.attributes[attribute]) <= text) return;
    asset.times[attribute] = at;
    asset.attributes[attribute] = value;
    asset.changed = true;
  }

  /** Whether the edges that are told now are the ones to have. Of those of one moment, the ones with the greater rank are. */
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

  function mergeOne({ telling, at, claims, baseline }: TimedTelling): void {
    const asserted = assertions.get(telling) ?? [];
    assertions.set(telling, asserted);
    if (baseline || dependsOnWhen(claims)) outdated.add(telling);
    const find = (name: AssetName): AssetName | undefined => {
      const now = history.resolve(name, at);
      if (!now || !sameName(now, history.resolve(name, FOREVER))) outdated.add(telling);
      return now;
    };
    for (const { name, attributes } of claims.nodes) {
      const now = find(name);
      if (now) set(standing(claim(now), at), attributes, at, asserted);
    }
    for (const edge of claims.edges) {
      // Each end is there whether the other one is or not.
      const [from, to] = [edge.from, edge.to].map((name) => find(name)).map((now) => now && standing(claim(now), at));
      if (from && to) join(edge.kind, from, to, edge.transformations ?? [], at);
    }
    for (const tag of claims.tags) {
      const link = history.resolve(linkOf(tag), at);
      const [asset, target] = [tag.from, tag.to]
        .map((name) => find(name))
        .map((now) => now && standing(claim(now), at));
      if (link && asset && target) join(tag.kind, asset, target, [], at);
    }
    for (const { owner, kind, to } of claims.owned) {
      const ends = to.flatMap((name) => find(name) ?? []).map((now) => standing(claim(now), at));
      const now = find(owner);
      if (!now) continue;
      const asset = standing(claim(now), at);
      if (!takes(asset, kind, at, rankOf(to))) continue;
      owned.set(`${asset.key} ${kind}`, { owner: asset, kind, to: ends, at });
    }
    if (claims.execution) {
      const now = find(claims.execution.process);
      if (now) processes.set(telling, standing(claim(now), at));
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
    async merge(told) {
      if (told.length === 0) return;
      const named = told.flatMap(({ claims }) => namesIn(claims));
      await history.load([...named, ...told.flatMap(({ claims }) => claims.tags.map(linkOf))]);
      // What a name means at any time is one of the names that the history has reached by now.
      await load([...named, ...history.reached()]);
      for (const one of told) mergeOne(one);
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
        [...assertions].map(([telling, asserted]) => [
          telling,
          !outdated.has(telling) &&
            asserted.every(
              ({ asset, attribute, text }) => !asset.contested && textOf(asset.attributes[attribute]) === text,
            ),
        ]),
      ),
    processes: () => processes,
  };
}

/**
 * Nearly everything is told below a catalog or schema, so a dispute about one would have all of it read again. The few
 * events that tell something of these themselves are applied each time instead, and their times are right.
 */
function hasRightTimes({ kind }: AssetName): boolean {
  return kind === "CATALOG" || kind === "SCHEMA";
}

function sameName(a: AssetName, b: AssetName | undefined): boolean {
  return a === b || (b !== undefined && keyOf(a) === keyOf(b));
}

/** Of such a telling each event counts, whether it tells anything new or not. */
function dependsOnWhen({ endings, tags, owned }: Claims): boolean {
  return endings.length + tags.length + owned.length > 0;
}

const RANK_HEX = 12;

function rankOf(names: readonly AssetName[]): number {
  return Number.parseInt(hashUuid(names.map(keyOf).sort().join()).replaceAll("-", "").slice(0, RANK_HEX), 16);
}

function linkOf({ from, kind, to }: TagClaim): LinkName {
  return linkName(from, kind, to.path[0] ?? "");
}

/** One text for one value, whatever the order of keys: Postgres keeps its own. */
function textOf(value: AttributeValue | undefined): string {
  if (value === undefined) return "null";
  return typeof value === "object" && value !== null ? canonicalJson(value) : JSON.stringify(value);
}
