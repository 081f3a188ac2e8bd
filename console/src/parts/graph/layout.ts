/**
 * Finds the positions of a graph in a worker: by elk as long as that is fast enough, else by our own pass. elk cannot be
 * interrupted (250 nodes took 27 s in one shape), so its worker is ended when the graph is not wanted any more or takes too long.
 */
import ELK, { type ElkExtendedEdge, type ElkNode } from "elkjs/lib/elk-api.js";
import elkWorkerUrl from "elkjs/lib/elk-worker.min.js?url";
import { edgeKey, LAYER_GAP, type Layout, type LayoutGraph, NODE_GAP, type Point } from "./layers.ts";
import { NODE_WIDTH, uniqueEdges } from "./model.ts";

const ELK_MAX = 300;
const FAST_ELK_MAX = 1_500;
const DEADLINE_MS = 5_000;
const CACHED_MAX = 30;

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.direction": "RIGHT",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.aspectRatio": "1.8",
  "elk.spacing.nodeNode": String(NODE_GAP),
  "elk.spacing.edgeNode": "16",
  "elk.spacing.edgeEdge": "8",
  "elk.spacing.componentComponent": "32",
  "elk.layered.spacing.nodeNodeBetweenLayers": String(LAYER_GAP),
  // Edges leave and enter in the middle of a node.
  "elk.layered.mergeEdges": "true",
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
  "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
};
const FAST = { "elk.layered.thoroughness": "1", "elk.layered.nodePlacement.strategy": "LINEAR_SEGMENTS" };

/** The newest at the end. */
const cache = new Map<string, Layout>();

/** Rejects with the signal's reason once the layout is no longer needed. */
export async function layOut(graph: LayoutGraph, signal: AbortSignal): Promise<Layout> {
  const key = keyOf(graph);
  const known = cache.get(key);
  const layout = known ?? (await compute(graph, signal));
  cache.delete(key);
  cache.set(key, layout);
  const [oldest] = cache.keys();
  if (cache.size > CACHED_MAX && oldest !== undefined) cache.delete(oldest);
  return layout;
}

async function compute(graph: LayoutGraph, signal: AbortSignal): Promise<Layout> {
  if (graph.nodes.length <= FAST_ELK_MAX) {
    try {
      return await byElk(graph, AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]));
    } catch {
      // Too slow, or a shape that elk cannot lay out.
    }
  }
  signal.throwIfAborted();
  return byOurPass(graph, signal);
}

let elk: InstanceType<typeof ELK> | undefined;

async function byElk({ nodes, edges }: LayoutGraph, signal: AbortSignal): Promise<Layout> {
  signal.throwIfAborted();
  // Reused: starting a worker takes longer than laying out a small graph.
  elk ??= new ELK({ workerFactory: () => new Worker(elkWorkerUrl) });
  const own = elk;
  const drawn = uniqueEdges(edges);
  const asked: ElkNode = {
    id: "root",
    layoutOptions: { ...OPTIONS, ...(nodes.length > ELK_MAX && FAST) },
    children: nodes.map(({ id, height }) => ({ id, height, width: NODE_WIDTH })),
    edges: drawn.map((edge) => ({ id: edgeKey(edge), sources: [edge.from], targets: [edge.to] })),
  };
  const found = await until(signal, own.layout(asked), () => {
    own.terminateWorker();
    if (elk === own) elk = undefined;
  });
  return {
    positions: new Map((found.children ?? []).map(({ id, x = 0, y = 0 }) => [id, { x, y }])),
    routes: new Map((found.edges ?? []).map((edge) => [edge.id, bendsOf(edge)])),
  };
}

function bendsOf({ sections = [] }: ElkExtendedEdge): Point[] {
  return sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [startPoint, ...bendPoints, endPoint]);
}

async function byOurPass(graph: LayoutGraph, signal: AbortSignal): Promise<Layout> {
  const worker = new Worker(new URL("./layers.worker.ts", import.meta.url), { type: "module" });
  const answer = new Promise<Layout>((resolve, reject) => {
    worker.addEventListener("message", ({ data }: MessageEvent<Layout>) => resolve(data));
    worker.addEventListener("error", ({ message }) => reject(new Error(message)));
    worker.postMessage(graph);
  });
  return until(signal, answer, () => {}).finally(() => worker.terminate());
}

/** Resolves with the result of `work`, or rejects if the signal aborts first. */
function until<Value>(signal: AbortSignal, work: Promise<Value>, onAbort: () => void): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      onAbort();
      reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
    };
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Equal graphs have equal positions, whatever their states are. */
function keyOf({ nodes, edges }: LayoutGraph): string {
  return JSON.stringify([nodes, edges.map(({ from, to }) => [from, to])]);
}
