/**
 * Brings a tenant's graph up to date with what was told. The graph is a function of everything told and of when: the order
 * in which it arrives changes nothing. The caller holds the tenant's graph alone.
 */
import type { Queryable } from "../kernel/data/db.ts";
import { type ChangedAsset, changeNames } from "./name-changes.ts";
import { keyOf, ownName, parentOf } from "./names.ts";
import type { JudgedRename } from "./reported-renames.ts";
import {
  cutOwnedEdges,
  type EdgeKey,
  insertNodes,
  type NewEdge,
  nextNodeIds,
  pruneAbove,
  updateNodes,
  upsertEdges,
  type WrittenNode,
} from "./store/graph.ts";
import { addTimes, setInFull, setProcess } from "./store/tellings.ts";
import { allTellingsNaming, connectedKeys, type TimedTelling } from "./timed-tellings.ts";
import { wordsOf } from "./words.ts";
import { createWorkingGraph, type WorkingAsset, type WorkingGraph } from "./working-graph.ts";

/** What a change of the graph means to others: to those who embed assets, and to those who mirror the graph. */
export interface GraphChange {
  assets: ChangedAsset[];
  /** These nodes and edges are new, different or gone. */
  nodes: string[];
  edges: EdgeKey[];
  /** The statement or job of each telling. */
  processes: ReadonlyMap<string, string>;
  /** Renames that engines have reported and that cannot have happened: they were not applied. */
  doubted: readonly JudgedRename[];
}

export interface TellingNow extends TimedTelling {
  /** Whether this telling was applied before. */
  known: boolean;
}

export async function apply(tx: Queryable, tenantId: string, told: readonly TellingNow[]): Promise<GraphChange> {
  if (told.length === 0) return { assets: [], nodes: [], edges: [], processes: new Map(), doubted: [] };
  await addTimes(
    tx,
    tenantId,
    told.filter(({ known }) => known).map(({ telling, at }) => ({ key: telling, at })),
  );
  const names = await changeNames(tx, tenantId, told);
  const working = createWorkingGraph(tx, tenantId);
  await working.merge([...names.again, ...told.filter(({ known }) => !known)]);
  await settle(tx, tenantId, working);
  // One that is known and is applied again, and is in dispute even so, goes to and fro with another.
  await working.merge(told.filter(({ known }) => known));
  await settle(tx, tenantId, working, (asset) => {
    asset.contested = true;
    asset.changed = true;
  });
  const written = await write(tx, tenantId, working);
  const pruned = await pruneAbove(tx, tenantId, names.nodes);
  await setInFullFlags(tx, tenantId, working);
  const isWritten = new Set(written.assets.map(({ id }) => id));
  return {
    assets: [...written.assets, ...names.renamed.filter(({ id }) => !isWritten.has(id))],
    nodes: [...new Set([...names.nodes, ...pruned, ...written.assets.map(({ id }) => id)])],
    edges: [...names.edges, ...written.edges],
    processes: written.processes,
    doubted: names.doubted,
  };
}

/** Where tellings disagree, everything that was told decides, with the times at which it was told. */
async function settle(
  tx: Queryable,
  tenantId: string,
  working: WorkingGraph,
  note: (asset: WorkingAsset) => void = () => {},
): Promise<void> {
  for (let found = working.takeDisputed(); found.subjects.length > 0; found = working.takeDisputed()) {
    const keys = found.subjects.map(keyOf);
    await working.merge(await allTellingsNaming(tx, tenantId, await connectedKeys(tx, tenantId, keys)));
    for (const asset of found.assets) note(asset);
  }
}

async function write(tx: Queryable, tenantId: string, working: WorkingGraph) {
  const changed = [...working.assets()].filter((asset) => asset.changed);
  const fresh = changed.filter(({ id }) => id === null);
  const ids = fresh.length > 0 ? await nextNodeIds(tx, fresh.length) : [];
  for (const [index, asset] of fresh.entries()) asset.id = ids[index] ?? null;
  const idByKey = new Map([...working.assets()].map(({ key, id }) => [key, id]));
  const row = (asset: WorkingAsset): WrittenNode => {
    const parent = parentOf(asset.name);
    return {
      ...asset,
      id: idOf(asset),
      kind: asset.name.kind,
      path: asset.name.path,
      name: ownName(asset.name),
      parent_id: parent ? (idByKey.get(keyOf(parent)) ?? null) : null,
      words: wordsOf(asset.name, asset.attributes),
    };
  };
  const isFresh = new Set(fresh);
  const owned = [...working.owned()];
  const edges: NewEdge[] = [...working.edges()].map(({ kind, from, to, transformations, at }) => ({
    src: idOf(from),
    kind,
    dst: idOf(to),
    transformations,
    first_at: at,
  }));
  for (const { owner, kind, to, at } of owned) {
    for (const end of new Set(to)) {
      edges.push({ src: idOf(owner), kind, dst: idOf(end), transformations: [], first_at: at });
    }
  }
  const inserted = fresh.map(row);
  const updated = changed.filter((asset) => !isFresh.has(asset)).map(row);
  const owners = owned.map(({ owner, kind }) => ({ src: idOf(owner), kind }));
  // Nothing is computed from here on: what is sent already must be waited for, whatever fails.
  const [, , cut, joined] = await Promise.all([
    insertNodes(tx, tenantId, inserted),
    updateNodes(tx, tenantId, updated),
    cutOwnedEdges(tx, tenantId, owners),
    upsertEdges(tx, tenantId, edges),
  ]);
  return {
    assets: changed.map((asset) => ({ id: idOf(asset), name: asset.name, attributes: asset.attributes })),
    edges: [...cut, ...joined],
    processes: new Map([...working.processes()].map(([telling, asset]) => [telling, idOf(asset)])),
  };
}

function idOf({ id, name }: WorkingAsset): string {
  if (id === null) throw new Error(`${name.kind} ${name.path.join(".")} was never written`);
  return id;
}

/** A telling that the graph agrees with need not be applied when it is told again. */
async function setInFullFlags(tx: Queryable, tenantId: string, working: WorkingGraph): Promise<void> {
  const verdicts = [...working.verdicts()];
  const keys = (agrees: boolean) => verdicts.filter(([, verdict]) => verdict === agrees).map(([telling]) => telling);
  await Promise.all([
    setInFull(tx, tenantId, keys(true), false),
    setInFull(tx, tenantId, keys(false), true),
    setProcess(
      tx,
      tenantId,
      [...working.processes()].map(([key, asset]) => ({ key, process_id: idOf(asset) })),
    ),
  ]);
}
