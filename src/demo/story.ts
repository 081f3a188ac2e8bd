/**
 * The story: a shop's orders and visits become KPIs that two teams hear of. Tables arrive out of order, so models wait; the
 * shop fails once, so a node is retried; a late order comes in, so a model runs again.
 */
import type { Api } from "./api.ts";
import {
  FILES,
  INDICATORS,
  type KpiId,
  MODELS,
  type ModelId,
  OP_TIME,
  ordersChain,
  REGIONS_CHAIN,
  SUBSCRIPTIONS,
  VISITS_FILE,
  visitsChain,
  visitsOf,
} from "./definitions.ts";
import { attemptsInOrder, deliveriesTo, generations, values, why } from "./readings.ts";
import { type Subscribers, TEAMS } from "./subscribers.ts";
import { workThroughStages } from "./worker.ts";

export interface Scene {
  api: Api;
  shopUrl: string;
  subscribers: Subscribers;
  /** Where the lake has its tables. */
  tablesDir: string;
  tell(line: string): void;
}

/** What can be read only at its moment, for the checks. */
export interface Told {
  chainId: string;
  firstRunId: string;
  /** The tables that each model waited for, before the last one came. */
  waitedFor: Record<ModelId, string>;
  revenueAtFirst: string;
  /** What the subscriber answered to a delivery that somebody else had signed. */
  answerToForgery: string;
}

interface Chains {
  orders: string;
  visits: string;
  regions: string;
}

const DELIVERIES_EXPECTED = 5;

export async function tellStory(scene: Scene): Promise<Told> {
  const { api, tell } = scene;
  const chains = await define(scene);
  await subscribe(scene);
  const answerToForgery = await forge(scene);

  await trackFiles(scene, chains.visits);
  tell(`TRAFFIC has its visits. ${(await why(api, "TRAFFIC")).verdict}`);

  const firstRunId = await runChain(api, chains.orders, { opTime: OP_TIME });
  await tellAttempts(scene, firstRunId);
  tell(`SALES has its orders. ${(await why(api, "SALES")).verdict}`);

  const waitedFor = { SALES: (await why(api, "SALES")).missing, TRAFFIC: (await why(api, "TRAFFIC")).missing };
  await announceRegions(scene, chains.regions);
  const revenueAtFirst = await values(api, "KD1001");
  tell(`revenue ${revenueAtFirst}; per visit ${await values(api, "KC2001")}`);

  tell("a late order comes in: ORDERS is loaded again");
  await runChain(api, chains.orders, { opTime: OP_TIME });
  await api.settled(async () => (await generations(api, "SALES")) === "1 SUCCESS, 2 SUCCESS");
  tell(`revenue ${await values(api, "KD1001")}; per visit ${await values(api, "KC2001")}`);

  await api.settled(async () => (await countDelivered(scene)) === DELIVERIES_EXPECTED);
  return { chainId: chains.orders, firstRunId, waitedFor, revenueAtFirst, answerToForgery };
}

async function define({ api, shopUrl, tablesDir, tell }: Scene): Promise<Chains> {
  const create = async (chain: object) => (await api.post<{ chainId: string }>("api/v1/chains", chain)).chainId;
  const chains = {
    orders: await create(ordersChain(shopUrl)),
    visits: await create(visitsChain(tablesDir)),
    regions: await create(REGIONS_CHAIN),
  };
  // A COMPUTED one is defined by its parts, so they come first.
  for (const kpiId of Object.keys(INDICATORS) as KpiId[]) {
    await api.put(`api/v1/kpi/indicators/${kpiId}`, INDICATORS[kpiId]);
  }
  for (const modelId of Object.keys(MODELS) as ModelId[]) {
    await api.put(`api/v1/kpi/models/${modelId}`, MODELS[modelId]);
    await api.post(`api/v1/kpi/models/${modelId}:publish`);
  }
  tell("defined: chains orders, visits and regions; models SALES and TRAFFIC; KPIs KD1001, KD1002 and KC2001");
  return chains;
}

async function subscribe({ api, subscribers, tell }: Scene): Promise<void> {
  for (const { kpiId, team } of SUBSCRIPTIONS) {
    const { signingKey } = await api.post<{ signingKey?: string }>("api/v1/kpi/subscriptions", {
      kpiId,
      callbackUrl: subscribers.callbackUrl(team),
      secret: subscribers.secret(team),
      teamName: team,
    });
    if (signingKey !== undefined) subscribers.trust(team, signingKey); // Told only with the first of a callback.
  }
  tell(`subscribed: ${TEAMS.join(" and ")}, each at a callback of its own`);
}

/** If this one were taken, that a genuine one is taken would say nothing. */
async function forge({ subscribers, tell }: Scene): Promise<string> {
  const [type, name = "", value = ""] = subscribers.secret("finance").split(",");
  const { status } = await fetch(subscribers.callbackUrl("finance"), {
    method: "POST",
    headers: {
      ...(type === "Header" ? { [name]: value } : {}),
      "webhook-id": "forged",
      "webhook-timestamp": String(Math.floor(Date.now() / 1000)),
      "webhook-signature": `v1,${Buffer.from("somebody else's signature").toString("base64")}`,
    },
    body: JSON.stringify({ event: "KPI_UPDATED", modelId: "SALES", generation: 99, rerun: true }),
  });
  tell(`finance answers a forged delivery with ${status}`);
  return String(status);
}

async function trackFiles({ api, tell }: Scene, chainId: string): Promise<void> {
  for (const file of FILES) {
    await api.post("api/v1/pipeline/files/register", file);
    tell(`${file.filename} is registered with ${file.shards.length} shards`);
    await api.post("api/v1/pipeline/stages/event-ingest/done", { filename: file.filename });
  }
  await workThroughStages(api, {
    shards: FILES.flatMap(({ shards }) => shards).length,
    async send({ filename, shard }) {
      if (filename !== VISITS_FILE.filename) return;
      await runChain(api, chainId, { opTime: OP_TIME, params: { shard, visits: visitsOf(shard) } });
    },
    onStageDone: (stage) => tell(`${stage} is done with all shards`),
  });
}

async function tellAttempts({ api, tell }: Scene, runId: string): Promise<void> {
  for (const { nodeId, attempt, status, error } of await attemptsInOrder(api, runId)) {
    if (status === "SUCCESS") tell(`orders: ${nodeId} is done${attempt > 1 ? `, at attempt ${attempt}` : ""}`);
    if (status === "FAILED") tell(`orders: ${nodeId} failed: ${error}`);
  }
}

async function announceRegions({ api, tell }: Scene, chainId: string): Promise<void> {
  await runChain(api, chainId, { opTime: OP_TIME });
  const { triggeredModels } = await api.post<{ triggeredModels: { modelId: string; status: string }[] }>(
    "api/open/kpi/srcTableComplete",
    { srcTableName: "REGIONS", opTime: OP_TIME },
  );
  const ran = triggeredModels.map(({ modelId, status }) => `${modelId} ${status}`).toSorted();
  tell(`REGIONS, the last table, arrives, and the models run: ${ran.join(", ")}`);
}

async function countDelivered({ api, subscribers }: Scene): Promise<number> {
  const lists = await Promise.all(TEAMS.map((team) => deliveriesTo(api, subscribers.callbackUrl(team))));
  return lists.flat().filter(({ status }) => status === "DELIVERED").length;
}

async function runChain(api: Api, chainId: string, start: object): Promise<string> {
  const { runId } = await api.post<{ runId: string }>(`api/v1/chains/${chainId}:start`, start);
  await api.ended(runId);
  return runId;
}
