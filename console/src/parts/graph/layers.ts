/**
 * Our own layout: nodes in layers by their longest path, ordered within a layer by the barycentre of their neighbours. It takes
 * 50 ms for 10,000 nodes where elk takes minutes, and looks plainer.
 */
import { type GraphEdge, type Links, linksOf, NODE_WIDTH } from "./model.ts";

export interface LayoutNode {
  id: string;
  height: number;
}
export interface Point {
  x: number;
  y: number;
}
export interface LayoutGraph {
  nodes: readonly LayoutNode[];
  edges: readonly GraphEdge[];
}
export interface Layout {
  /** The upper left corner of each node. */
  positions: ReadonlyMap<string, Point>;
  /** The bends of each edge, by `edgeKey`; an edge without them is a curve. */
  routes: ReadonlyMap<string, readonly Point[]>;
}

export const LAYER_GAP = 64;
export const NODE_GAP = 20;
const SWEEPS = 4;

export function edgeKey({ from, to }: GraphEdge): string {
  return JSON.stringify([from, to]);
}

export function layOutInLayers({ nodes, edges }: LayoutGraph): Layout {
  const ids = nodes.map(({ id }) => id);
  const links = linksOf(ids, edges);
  const layers = orderedLayers(ids, links);
  const heights = new Map(nodes.map(({ id, height }) => [id, height]));
  return { positions: place(layers, links, heights), routes: new Map() };
}

/** The layer of each node: one more than the last of its parents. In a cycle, the edge that closes it does not count. */
export function layersOf(ids: readonly string[], links: Links): Map<string, number> {
  const open = new Map(ids.map((id) => [id, links.before.get(id)?.length ?? 0]));
  const layer = new Map<string, number>();
  const ready = ids.filter((id) => open.get(id) === 0);
  let read = 0;
  let scan = 0;
  while (layer.size < ids.length) {
    let id = ready[read];
    if (id === undefined) {
      // Only cycles are left: the first node that was not reached begins one.
      while (layer.has(ids[scan] as string)) scan += 1;
      id = ids[scan] as string;
    } else read += 1;
    if (layer.has(id)) continue;
    const parents = (links.before.get(id) ?? []).map((parent) => layer.get(parent));
    layer.set(
      id,
      parents.reduce<number>((most, parent) => Math.max(most, (parent ?? -1) + 1), 0),
    );
    for (const child of links.after.get(id) ?? []) {
      const left = (open.get(child) ?? 0) - 1;
      open.set(child, left);
      if (left === 0) ready.push(child);
    }
  }
  return layer;
}

function orderedLayers(ids: readonly string[], links: Links): string[][] {
  const layerOf = layersOf(ids, links);
  const layers: string[][] = [];
  for (const id of ids) {
    const at = layerOf.get(id) ?? 0;
    while (layers.length <= at) layers.push([]);
    layers[at]?.push(id);
  }
  const rank = new Map<string, number>();
  const number = (layer: readonly string[]) => layer.forEach((id, index) => rank.set(id, index / layer.length));
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    const neighbours = isDown ? links.before : links.after;
    for (const layer of isDown ? layers : layers.toReversed()) {
      const weight = new Map(layer.map((id) => [id, mean(neighbours.get(id) ?? [], rank) ?? rank.get(id) ?? 0]));
      layer.sort((one, other) => (weight.get(one) ?? 0) - (weight.get(other) ?? 0));
      number(layer);
    }
  }
  return layers;
}

function mean(ids: readonly string[], values: ReadonlyMap<string, number>): number | undefined {
  if (ids.length === 0) return undefined;
  return ids.reduce((sum, id) => sum + (values.get(id) ?? 0), 0) / ids.length;
}

/** Each node beside the middle of its parents, or below the one above it; then the layer moves as one to where most belong. */
function place(
  layers: readonly (readonly string[])[],
  { before }: Links,
  heights: ReadonlyMap<string, number>,
): Map<string, Point> {
  const middles = new Map<string, number>();
  const positions = new Map<string, Point>();
  layers.forEach((layer, index) => {
    let top = Number.NEGATIVE_INFINITY;
    let drift = 0;
    const tops = layer.map((id) => {
      const height = heights.get(id) ?? 0;
      const middle = mean(
        (before.get(id) ?? []).filter((parent) => middles.has(parent)),
        middles,
      );
      const wish = middle === undefined ? Math.max(top, 0) : middle - height / 2;
      const y = Math.max(top, wish);
      drift += wish - y;
      top = y + height + NODE_GAP;
      return y;
    });
    layer.forEach((id, at) => {
      const y = (tops[at] ?? 0) + drift / layer.length;
      positions.set(id, { x: index * (NODE_WIDTH + LAYER_GAP), y });
      middles.set(id, y + (heights.get(id) ?? 0) / 2);
    });
  });
  return positions;
}
