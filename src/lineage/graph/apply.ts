/**
 * Applies assertions to a tenant's graph. The graph is a function of all assertions and their times, whatever the order in
 * which they arrive. The caller holds the exclusive lock of the tenant's graph.
 */
import type { Queryable } from "../../kernel/data/db.ts";
import { addTimes, setInFull, setProcess } from "../store/assertions.ts";
import {
  deleteOwnedEdges,
  type EdgeKey,
  insertNodes,
  type NewEdge,
  nextNodeIds,
  pruneAbove,
  updateNodes,
  upsertEdges,
  type WrittenNode,
} from "../store/graph.ts";
import { type ChangedAsset, changeNames } from "./name-changes.ts";
import { keyOf, ownName, parentOf } from "./names.ts";
import type { JudgedRename } from "./reported-renames.ts";
import { allAssertionsNaming, connectedKeys, type TimedAssertion } from "./timed-assertions.ts";
import { wordsOf } from "./words.ts";
import { createWorkingGraph, type WorkingAsset, type WorkingGraph } from "./working-graph.ts";

/** What has changed in the graph, for those who embed assets or mirror the graph. */
export interface GraphChange {
  assets: ChangedAsset[];
  /** These nodes and edges are new, different or gone. */
  nodes: string[];
  edges: EdgeKey[];
  /** The statement or job of each assertion. */
  processes: ReadonlyMap<string, string>;
  /** Renames that engines have reported and that cannot have happened: they were not applied. */
  doubted: readonly JudgedRename[];
}

export interface IncomingAssertion extends TimedAssertion {
  /** Whether this assertion was applied before. */
  known: boolean;
}

export async function apply(
  tx: Queryable,
  tenantId: string,
  assertions: readonly IncomingAssertion[],
): Promise<GraphChange> {
  if (assertions.length === 0) return { assets: [], nodes: [], edges: [], processes: new Map(), doubted: [] };
  await addTimes(
    tx,
    tenantId,
    assertions.filter(({ known }) => known).map(({ assertion, at }) => ({ key: assertion, at })),
  );
  const names = await changeNames(tx, tenantId, assertions);
  const working = createWorkingGraph(tx, tenantId);
  await working.merge([...names.again, ...assertions.filter(({ known }) => !known)]);
  await settle(tx, tenantId, working);
  // A known assertion that is still disputed contradicts another one each time: its assets are contested from now on.
  await working.merge(assertions.filter(({ known }) => known));
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

/** Where assertions disagree, all assertions about the asset decide, with their times. */
async function settle(
  tx: Queryable,
  tenantId: string,
  working: WorkingGraph,
  note: (asset: WorkingAsset) => void = () => {},
): Promise<void> {
  for (let found = working.takeDisputed(); found.subjects.length > 0; found = working.takeDisputed()) {
    const keys = found.subjects.map(keyOf);
    await working.merge(await allAssertionsNaming(tx, tenantId, await connectedKeys(tx, tenantId, keys)));
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
  // No code that may throw comes before the wait: statements that are sent have to be awaited.
  const [, , cut, joined] = await Promise.all([
    insertNodes(tx, tenantId, inserted),
    updateNodes(tx, tenantId, updated),
    deleteOwnedEdges(tx, tenantId, owners),
    upsertEdges(tx, tenantId, edges),
  ]);
  return {
    assets: changed.map((asset) => ({ id: idOf(asset), name: asset.name, attributes: asset.attributes })),
    edges: [...cut, ...joined],
    processes: new Map([...working.processes()].map(([assertion, asset]) => [assertion, idOf(asset)])),
  };
}

function idOf({ id, name }: WorkingAsset): string {
  if (id === null) throw new Error(`${name.kind} ${name.path.join(".")} was never written`);
  return id;
}

/** The next event of a settled assertion need not be applied. */
async function setInFullFlags(tx: Queryable, tenantId: string, working: WorkingGraph): Promise<void> {
  const verdicts = [...working.verdicts()];
  const keys = (agrees: boolean) =>
    verdicts.filter(([, verdict]) => verdict === agrees).map(([assertion]) => assertion);
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
