/** The lineage of the scenario: events of Spark join Millrace's own, other tenants have theirs, and paths are read back. */
import { randomUUID } from "node:crypto";
import { Refusal } from "../cli/common/client.ts";
import { type Access, type Api, createApi } from "./api.ts";
import { dbtEvents, REPORT, sparkEvents } from "./lineage-events.ts";
import { type Items, sortedList } from "./readings.ts";
import { SOURCE_NAMES, type SourceName, type Sources } from "./sources.ts";

/** The tenant of Millrace's own lineage, and of the Spark that works on its tables. */
export const OWN_TENANT = { id: 1, code: "millrace", name: "Millrace" };
const ACME = { id: 7, code: "acme", name: "Acme", state: "READY" };
/** It waits for a full sync, so its events are kept and not applied. */
const GLOBEX = { id: 8, code: "globex", name: "Globex" };

export const LINEAGE_PATHS = {
  graph: "api/v1/lineage/graph",
  columns: "api/v1/lineage/columns/graph",
  tenants: "api/v1/lineage/tenants",
  events: "api/v1/lineage/events",
} as const;

interface LineageContext {
  api: Api;
  access: Access;
  tablesDir: string;
  signal: AbortSignal;
  printLine(line: string): void;
}

interface Graph {
  start: string;
  nodes: { id: string; kind: string; fullName: string; name: string }[];
  edges: { from: string; to: string }[];
}

export async function sendLineage(context: LineageContext): Promise<void> {
  const { api, printLine, tablesDir } = context;
  await api.post("api/v1/lineage/tenants", ACME);
  await api.post("api/v1/lineage/tenants", GLOBEX);
  const at = Date.now();
  const spark = sparkEvents({ at, uuid: randomUUID, tablesDir });
  await send(context, OWN_TENANT.id, spark);
  await send(context, ACME.id, dbtEvents({ at, uuid: randomUUID }));
  await send(context, GLOBEX.id, dbtEvents({ at, uuid: randomUUID }).slice(0, 1));
  printLine(
    `Spark sends ${spark.length} events about tables made from the harvested ones; two other tenants send theirs`,
  );
}

/** With a key of the tenant, as an engine does. */
async function send(
  { api, access, signal }: LineageContext,
  tenantId: number,
  events: readonly object[],
): Promise<void> {
  const { key } = await api.post<{ key: string }>("api/v1/keys", {
    name: `engine of tenant ${tenantId}`,
    scopes: ["lineage:write"],
    tenantId,
    source: "COMPUTE_ENGINE",
  });
  const engine = createApi({ url: access.url, key }, signal);
  for (const event of events) await engine.post("api/v1/lineage", event);
}

/** `arxiv, crossref`: the sources whose API is upstream of an asset. */
export async function sourcesAbove(api: Api, sources: Sources, node: string): Promise<string> {
  const { nodes } = await upstream(api, LINEAGE_PATHS.graph, node);
  return sortedList(SOURCE_NAMES.filter((source) => nodes.some(({ fullName }) => isOf(sources, source, fullName))));
}

/** `DOI -> doi -> doi -> doi -> works`: the columns on a way from a source's API to a column of the report. */
export async function columnsAbove(api: Api, sources: Sources, source: SourceName): Promise<string> {
  const graph = await upstream(api, LINEAGE_PATHS.columns, `${REPORT}.works`);
  const first = graph.nodes.find(({ fullName }) => isOf(sources, source, fullName));
  return first === undefined ? "none" : pathOf(graph, first.id).join(" -> ");
}

/** `acme READY, globex NEW`. */
export async function tenantStates(api: Api): Promise<string> {
  const { items } = await api.get<Items<{ code: string; state: string }>>(LINEAGE_PATHS.tenants);
  return sortedList(items.map(({ code, state }) => `${code} ${state}`));
}

/** `8 APPLIED`: what became of the events of Spark. */
export async function sparkStates(api: Api): Promise<string> {
  const { items } = await api.get<Items<{ jobNamespace: string; state: string }>>(LINEAGE_PATHS.events, {
    tenant: OWN_TENANT.id,
    limit: 1_000,
  });
  const states = items.filter(({ jobNamespace }) => jobNamespace === "spark").map(({ state }) => state);
  return sortedList([...new Set(states)].map((state) => `${states.filter((one) => one === state).length} ${state}`));
}

async function upstream(api: Api, path: string, node: string): Promise<Graph> {
  try {
    return await api.get<Graph>(path, { tenant: OWN_TENANT.id, node, direction: "up", depth: 20 });
  } catch (error) {
    // The events of what was committed follow after a moment.
    if (error instanceof Refusal && error.status === 404) return { start: "", nodes: [], edges: [] };
    throw error;
  }
}

function isOf(sources: Sources, source: SourceName, fullName: string): boolean {
  return fullName.includes(sources.get(source).origin);
}

/** The names on a shortest way from an asset to the start of the graph. */
function pathOf({ start, nodes, edges }: Graph, from: string): string[] {
  const ways: string[][] = [[from]];
  const seen = new Set([from]);
  for (let way = ways.shift(); way !== undefined; way = ways.shift()) {
    const last = way.at(-1) ?? "";
    if (last === start) return way.map((id) => nodes.find((node) => node.id === id)?.name ?? id);
    for (const { from: source, to } of edges)
      if (source === last && !seen.has(to)) {
        seen.add(to);
        ways.push([...way, to]);
      }
  }
  return ["none"];
}
