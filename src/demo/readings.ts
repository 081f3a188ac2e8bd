/** What the scenario and its checks read through the API: each reading is one line of text, to show and compare. */
import type { Api } from "./api.ts";
import type { KpiId, ModelId } from "./definitions.ts";

export interface Items<Item> {
  items: Item[];
}

export const PATHS = {
  summary: "api/v1/pipeline/metrics/summary",
  arrivals: "api/v1/kpi/arrivals",
  taskLogs: "api/v1/kpi/task-logs",
  data: "api/v1/kpi/data",
  deliveries: "api/v1/kpi/deliveries",
  runs: "api/v1/runs",
  plan: (planId: string) => `api/v1/harvest/plans/${planId}`,
  events: (runId: string) => `api/v1/runs/${runId}/events`,
  attempts: (runId: string, nodeId: string) => `api/v1/runs/${runId}/nodes/${nodeId}/attempts`,
  why: (modelId: ModelId) => `api/v1/kpi/models/${modelId}/why`,
} as const;

interface RunEvent {
  kind: string;
  nodeId: string | null;
  attempt: number | null;
  detail: { status?: string; error?: string };
}

export interface AttemptEnd {
  nodeId: string;
  attempt: number;
  status: string;
  error: string;
}

export interface Delivery {
  id: string;
  status: string;
}

/** `5 of 5 shards` have passed the last stage. */
export async function shardsDone(api: Api): Promise<string> {
  const { total, by_shard } = await api.get<{ total: number; by_shard: { done: number }[] }>(PATHS.summary);
  return `${by_shard.reduce((sum, { done }) => sum + done, 0)} of ${total} shards`;
}

/** `ORDERS 2, REGIONS 1`: how often each of these tables has arrived. */
export async function arrivalCounts(api: Api, opTime: string, tables: readonly string[]): Promise<string> {
  const { items } = await api.get<Items<{ table: string; arrivals: number }>>(PATHS.arrivals, { opTime });
  return sortedList(
    items.filter(({ table }) => tables.includes(table)).map(({ table, arrivals }) => `${table} ${arrivals}`),
  );
}

/** Why a model has run or not, and the tables that it waits for. */
export async function why(api: Api, modelId: ModelId, opTime: string): Promise<{ verdict: string; missing: string }> {
  const { verdict, tables } = await api.get<{ verdict: string; tables: { table: string; missing: boolean }[] }>(
    PATHS.why(modelId),
    { opTime },
  );
  return { verdict, missing: sortedList(tables.filter(({ missing }) => missing).map(({ table }) => table)) };
}

/** `1 SUCCESS, 2 SUCCESS`: the generations of a model. */
export async function generations(api: Api, modelId: ModelId, opTime: string): Promise<string> {
  const { items } = await api.get<Items<{ generation: number; status: string }>>(PATHS.taskLogs, {
    modelId,
    opTime,
  });
  return sortedList(items.map(({ generation, status }) => `${generation} ${status}`));
}

/** `America 80, Europe 180`: the values of a KPI, by its dimension. */
export async function values(api: Api, kpiId: KpiId, opTime: string): Promise<string> {
  const { items } = await api.get<Items<{ value: number; dimensions: Record<string, string> }>>(PATHS.data, {
    kpiId,
    opTime,
  });
  return sortedList(items.map(({ value, dimensions }) => `${Object.values(dimensions).join(" ")} ${value}`));
}

/** `SUCCESS, SUCCESS`: how the runs of a chain ended. */
export async function runStatuses(api: Api, chainId: string): Promise<string> {
  const { items } = await api.get<Items<{ status: string }>>(PATHS.runs, { chainId });
  return sortedList(items.map(({ status }) => status));
}

/** `1 FAILED, 2 SUCCESS`. */
export async function attempts(api: Api, runId: string, nodeId: string): Promise<string> {
  const items = await api.get<{ attempt: number; status: string }[]>(PATHS.attempts(runId, nodeId));
  return sortedList(items.map(({ attempt, status }) => `${attempt} ${status}`));
}

/** The attempts of all nodes, in the order in which they ended. Read after the run: polling could miss a short state. */
export async function attemptsInOrder(api: Api, runId: string): Promise<AttemptEnd[]> {
  const { items } = await api.get<Items<RunEvent>>(PATHS.events(runId));
  return items.flatMap(({ kind, nodeId, attempt, detail: { status = "", error = "" } }) =>
    kind === "node ended" && nodeId !== null && attempt !== null ? [{ nodeId, attempt, status, error }] : [],
  );
}

export async function deliveriesTo(api: Api, callbackUrl: string): Promise<Delivery[]> {
  const { items } = await api.get<Items<Delivery>>(PATHS.deliveries, { callbackUrl });
  return items;
}

/** `SALES 1, SALES 2 (rerun)`: the content of deliveries. */
export async function contentOf(api: Api, deliveries: readonly Delivery[]): Promise<string> {
  const details = await Promise.all(
    deliveries.map(({ id }) =>
      api.get<{ payload: { modelId: string; generation: number; rerun: boolean } }>(`${PATHS.deliveries}/${id}`),
    ),
  );
  return sortedList(
    details.map(({ payload: { modelId, generation, rerun } }) => `${modelId} ${generation}${rerun ? " (rerun)" : ""}`),
  );
}

/** Sorted, so that the text does not depend on the order of the reply. */
export function sortedList(texts: readonly string[]): string {
  return texts.toSorted().join(", ") || "none";
}
