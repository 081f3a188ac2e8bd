/** Sources by a part of their name, and plans by their id or its beginning. */
import { call, pathTo } from "../api/client.ts";
import type { Finder, Found } from "../app/found.ts";
import { type Listed, type Plan, paths, type SourceSummary } from "./api.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Ids begin with their time, so those of one minute begin alike. */
const PART_OF_ID = /^[0-9a-f-]{6,36}$/i;
const SOURCES_MAX = 10;
const RECENT_PLANS = 200;

async function findSources(q: string, signal: AbortSignal): Promise<Found[]> {
  const { items } = (await call<Listed<SourceSummary>>(paths.sources({ q, size: SOURCES_MAX }), { signal })).data;
  return items.map(({ source, name }) => ({ title: source, detail: name, to: pathTo`/harvest/${source}` }));
}

async function findPlans(q: string, signal: AbortSignal): Promise<Found[]> {
  if (UUID.test(q)) return [found((await call<Plan>(paths.plan(q), { signal })).data)];
  if (!PART_OF_ID.test(q)) return [];
  const { items } = (await call<Listed<Plan>>(paths.plans({ limit: RECENT_PLANS }), { signal })).data;
  return items.filter(({ planId }) => planId.startsWith(q.toLowerCase())).map(found);
}

function found({ planId, source, endpoint, status }: Plan): Found {
  return { title: planId, detail: `${source}/${endpoint} ${status}`, to: pathTo`/harvest/plans/${planId}` };
}

export const harvestFinder: Finder = {
  icon: "harvest",
  scope: "harvest:read",
  async find(query, signal) {
    const lists = await Promise.all(
      [findSources, findPlans].map((find) => find(query, signal).catch((): Found[] => [])),
    );
    return lists.flat();
  },
};
