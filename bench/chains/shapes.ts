/** The DAGs that the engines are measured with, as data: every engine runs the same nodes with the same dependencies. */

interface ShapeNode {
  id: string;
  dependsOn: string[];
}

export interface Shape {
  name: string;
  /** Nodes of one layer depend on nodes of the layer before, and on no others. */
  layers: ShapeNode[][];
}

/** So many runs of one shape, with so many under way at a time. */
export interface Load {
  shape: Shape;
  runs: number;
  inFlight: number;
}

const CHAIN_OF_TEN = layered("chain of ten", { layers: 10, width: 1, parents: 1 });
const THOUSAND = layered("1,000-node DAG", { layers: 10, width: 100, parents: 3 });
const TEN_THOUSAND = layered("10,000-node DAG", { layers: 100, width: 100, parents: 2 });

export const LOADS = {
  oneDag: { shape: THOUSAND, runs: 1, inFlight: 1 },
  manyChains: { shape: CHAIN_OF_TEN, runs: 200, inFlight: 200 },
  busyChains: { shape: CHAIN_OF_TEN, runs: 300, inFlight: 100 },
  largeDag: { shape: TEN_THOUSAND, runs: 1, inFlight: 1 },
  history: { shape: CHAIN_OF_TEN, runs: 10_000, inFlight: 200 },
} as const satisfies Record<string, Load>;
export type LoadName = keyof typeof LOADS;

export function nodesOf({ shape, runs }: Load): number {
  return runs * shape.layers.flat().length;
}

function layered(name: string, { layers, width, parents }: { layers: number; width: number; parents: number }): Shape {
  // Spread over the whole layer before, so that no part of the DAG can run ahead on its own.
  const stride = Math.ceil(width / parents);
  const parentsOf = (layer: number, index: number) =>
    layer === 0 ? [] : indexes(parents).map((n) => nodeId(layer - 1, (index + n * stride) % width));
  return {
    name,
    layers: indexes(layers).map((layer) =>
      indexes(width).map((index) => ({ id: nodeId(layer, index), dependsOn: parentsOf(layer, index) })),
    ),
  };
}

function indexes(length: number): number[] {
  return [...Array(length).keys()];
}

function nodeId(layer: number, index: number): string {
  return `n${layer}-${index}`;
}
