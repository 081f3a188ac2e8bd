/** What the checks of the harvest read through the API, over all days. */
import type { PlanDetail } from "../cli/harvest/api.ts";
import type { Api } from "./api.ts";
import type { KpiId, ModelId } from "./definitions.ts";
import { type Items, PATHS, sortedList } from "./readings.ts";
import { SOURCE_NAMES, SOURCES } from "./sources.ts";

/** No fewer than the scenario has of anything. */
const PAGE_SIZE = 200;

/** `714 records, 7 days landed, 0 gaps`. */
export async function harvested(api: Api, planId: string): Promise<string> {
  const { reconciliation, landing } = await api.get<PlanDetail>(PATHS.plan(planId));
  return `${reconciliation.received} records, ${landing?.windows.LANDED ?? 0} days landed, ${reconciliation.gaps} gaps`;
}

/** `arxiv 7, crossref 7, pubmed 7`: how often the table of each source has arrived, for all days. */
export async function arrivalsOfSources(api: Api): Promise<string> {
  const counts = SOURCE_NAMES.map(async (source) => {
    const { table } = SOURCES[source];
    const { items } = await api.get<Items<{ arrivals: number }>>(PATHS.arrivals, { table, size: PAGE_SIZE });
    return `${source} ${items.reduce((sum, { arrivals }) => sum + arrivals, 0)}`;
  });
  return sortedList(await Promise.all(counts));
}

/** `7 SUCCESS, 1 per day`: a model that had not waited would have run for each table. */
export async function runsOfDays(api: Api, modelId: ModelId): Promise<string> {
  const { items } = await api.get<Items<{ opTime: string; status: string }>>(PATHS.taskLogs, {
    modelId,
    size: PAGE_SIZE,
  });
  const statuses = items.map(({ status }) => status);
  const counts = [...new Set(statuses)].map((status) => `${statuses.filter((one) => one === status).length} ${status}`);
  const days = new Set(items.map(({ opTime }) => opTime)).size;
  return `${sortedList(counts)}, ${days === 0 ? 0 : items.length / days} per day`;
}

/** `1666 in 7 days`: the sum of a KPI. */
export async function totalOfDays(api: Api, kpiId: KpiId): Promise<string> {
  const items = await valuesOf(api, kpiId);
  const sum = items.reduce((total, { value }) => total + value, 0);
  return `${sum} in ${new Set(items.map(({ opTime }) => opTime)).size} days`;
}

/** `6 days` have a value. */
export async function valueCount(api: Api, kpiId: KpiId): Promise<string> {
  return `${new Set((await valuesOf(api, kpiId)).map(({ opTime }) => opTime)).size} days`;
}

async function valuesOf(api: Api, kpiId: KpiId): Promise<{ opTime: string; value: number }[]> {
  const { items } = await api.get<Items<{ opTime: string; value: number }>>(PATHS.data, { kpiId, size: PAGE_SIZE });
  return items;
}
