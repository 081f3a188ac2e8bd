/**
 * The scenario: a shop's orders and visits become KPIs, and two teams are notified of them. Tables arrive out of order, so models
 * wait; the shop fails once, so a node is retried; a late order arrives, so a model runs again.
 */
import { counted } from "../kernel/text/sentences.ts";
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

export interface ScenarioContext {
  api: Api;
  shopUrl: string;
  subscribers: Subscribers;
  /** The folder of the lake that has a folder for each table. */
  tablesDir: string;
  printLine(line: string): void;
}

/** What the checks need and cannot read after the end. */
export interface Observed {
  chainId: string;
  firstRunId: string;
  /** The tables that each model waited for before the last one arrived. */
  waitedFor: Record<ModelId, string>;
  firstRevenue: string;
  /** The subscriber's status for a delivery with a wrong signature. */
  forgeryStatus: string;
}

interface Chains {
  orders: string;
  visits: string;
  regions: string;
}

const DELIVERIES_EXPECTED = 5;

export async function runScenario(context: ScenarioContext): Promise<Observed> {
  const { api, printLine } = context;
  const chains = await define(context);
  await subscribe(context);
  const forgeryStatus = await forge(context);

  await trackFiles(context, chains.visits);
  printLine(`TRAFFIC has its visits. ${(await why(api, "TRAFFIC")).verdict}`);

  const firstRunId = await runChain(api, chains.orders, { opTime: OP_TIME });
  await printAttempts(context, firstRunId);
  printLine(`SALES has its orders. ${(await why(api, "SALES")).verdict}`);

  const waitedFor = { SALES: (await why(api, "SALES")).missing, TRAFFIC: (await why(api, "TRAFFIC")).missing };
  await announceRegions(context, chains.regions);
  const firstRevenue = await values(api, "KD1001");
  printLine(`revenue ${firstRevenue}; per visit ${await values(api, "KC2001")}`);

  printLine("a late order arrives: ORDERS is loaded again");
  await runChain(api, chains.orders, { opTime: OP_TIME });
  await api.waitUntil(async () => (await generations(api, "SALES")) === "1 SUCCESS, 2 SUCCESS");
  printLine(`revenue ${await values(api, "KD1001")}; per visit ${await values(api, "KC2001")}`);

  await api.waitUntil(async () => (await countDelivered(context)) === DELIVERIES_EXPECTED);
  return { chainId: chains.orders, firstRunId, waitedFor, firstRevenue, forgeryStatus };
}

async function define({ api, shopUrl, tablesDir, printLine }: ScenarioContext): Promise<Chains> {
  const create = async (chain: object) => (await api.post<{ chainId: string }>("api/v1/chains", chain)).chainId;
  const chains = {
    orders: await create(ordersChain(shopUrl)),
    visits: await create(visitsChain(tablesDir)),
    regions: await create(REGIONS_CHAIN),
  };
  // A COMPUTED indicator needs its parts to exist.
  for (const kpiId of Object.keys(INDICATORS) as KpiId[]) {
    await api.put(`api/v1/kpi/indicators/${kpiId}`, INDICATORS[kpiId]);
  }
  for (const modelId of Object.keys(MODELS) as ModelId[]) {
    await api.put(`api/v1/kpi/models/${modelId}`, MODELS[modelId]);
    await api.post(`api/v1/kpi/models/${modelId}:publish`);
  }
  printLine("defined: chains orders, visits and regions; models SALES and TRAFFIC; KPIs KD1001, KD1002 and KC2001");
  return chains;
}

async function subscribe({ api, subscribers, printLine }: ScenarioContext): Promise<void> {
  for (const { kpiId, team } of SUBSCRIPTIONS) {
    const { signingKey } = await api.post<{ signingKey?: string }>("api/v1/kpi/subscriptions", {
      kpiId,
      callbackUrl: subscribers.callbackUrl(team),
      secret: subscribers.secret(team),
      teamName: team,
    });
    if (signingKey !== undefined) subscribers.trust(team, signingKey); // Returned only for the first subscription of a callback.
  }
  printLine(`subscribed: ${TEAMS.join(" and ")}, each with its own callback`);
}

/** Shows that the subscriber rejects a wrong signature, so that its accepting the others proves something. */
async function forge({ subscribers, printLine }: ScenarioContext): Promise<string> {
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
  printLine(`finance answers a forged delivery with ${status}`);
  return String(status);
}

async function trackFiles({ api, printLine }: ScenarioContext, chainId: string): Promise<void> {
  for (const file of FILES) {
    await api.post("api/v1/pipeline/files/register", file);
    printLine(`${file.filename} is registered with ${counted(file.shards.length, "shard")}`);
    await api.post("api/v1/pipeline/stages/event-ingest/done", { filename: file.filename });
  }
  await workThroughStages(api, {
    shards: FILES.flatMap(({ shards }) => shards).length,
    async send({ filename, shard }) {
      if (filename !== VISITS_FILE.filename) return;
      await runChain(api, chainId, { opTime: OP_TIME, params: { shard, visits: visitsOf(shard) } });
    },
    onStageDone: (stage) => printLine(`${stage} is done with all shards`),
  });
}

async function printAttempts({ api, printLine }: ScenarioContext, runId: string): Promise<void> {
  for (const { nodeId, attempt, status, error } of await attemptsInOrder(api, runId)) {
    if (status === "SUCCESS") printLine(`orders: ${nodeId} is done${attempt > 1 ? `, at attempt ${attempt}` : ""}`);
    if (status === "FAILED") printLine(`orders: ${nodeId} failed: ${error}`);
  }
}

async function announceRegions({ api, printLine }: ScenarioContext, chainId: string): Promise<void> {
  await runChain(api, chainId, { opTime: OP_TIME });
  const { triggeredModels } = await api.post<{ triggeredModels: { modelId: string; status: string }[] }>(
    "api/open/kpi/srcTableComplete",
    { srcTableName: "REGIONS", opTime: OP_TIME },
  );
  const ran = triggeredModels.map(({ modelId, status }) => `${modelId} ${status}`).toSorted();
  printLine(`REGIONS, the last table, arrives, and the models run: ${ran.join(", ")}`);
}

async function countDelivered({ api, subscribers }: ScenarioContext): Promise<number> {
  const lists = await Promise.all(TEAMS.map((team) => deliveriesTo(api, subscribers.callbackUrl(team))));
  return lists.flat().filter(({ status }) => status === "DELIVERED").length;
}

async function runChain(api: Api, chainId: string, start: object): Promise<string> {
  const { runId } = await api.post<{ runId: string }>(`api/v1/chains/${chainId}:start`, start);
  await api.ended(runId);
  return runId;
}
