/**
 * The scenario: sources are harvested, a shop's orders and visits are loaded, both become KPIs, and teams are notified of them.
 * Tables arrive out of order, so models wait; the shop fails once, so a node is retried; a late order arrives, so a model runs
 * again; and some things are left for a person.
 */
import { counted } from "../kernel/text/sentences.ts";
import type { Access, Api } from "./api.ts";
import { type Days, newestOf, opTimeOf } from "./days.ts";
import {
  clicksFile,
  exportChain,
  INDICATORS,
  type KpiId,
  MODELS,
  type ModelId,
  ordersChain,
  REGIONS_CHAIN,
  SIGN_OFF,
  SUBSCRIPTIONS,
  type TrackedFile,
  visitsChain,
  visitsFile,
  visitsOf,
} from "./definitions.ts";
import { defineSources, harvestAll, type Plans } from "./harvest.ts";
import { sendLineage, sourcesAbove } from "./lineage.ts";
import type { DemoOutput } from "./output.ts";
import { attemptsInOrder, deliveriesTo, generations, values, why } from "./readings.ts";
import type { Shop } from "./shop.ts";
import type { Sources } from "./sources.ts";
import { type Subscribers, TEAMS } from "./subscribers.ts";
import { workThroughStages } from "./worker.ts";

export interface ScenarioContext {
  api: Api;
  access: Access;
  days: Days;
  sources: Sources;
  shop: Shop;
  subscribers: Subscribers;
  /** The folder of the lake that has a folder for each table. */
  tablesDir: string;
  output: DemoOutput;
  printLine(line: string): void;
  signal: AbortSignal;
}

/** What the checks need but cannot read once the scenario is over. */
export interface Observed {
  chains: Chains;
  plans: Plans;
  firstRunId: string;
  /** The tables that each model waited for before the last one arrived. */
  waitedFor: Record<"SALES" | "TRAFFIC", string>;
  firstRevenue: string;
  /** The subscriber's status for a delivery with a wrong signature. */
  forgeryStatus: string;
}

export interface Chains {
  orders: string;
  visits: string;
  regions: string;
  export: string;
}

/** To the teams that are up. */
const DELIVERIES_EXPECTED = 12;
/** SALES to finance and growth, TRAFFIC to growth. */
const DELIVERIES_OF_FIRST_RUNS = 3;

export async function runScenario(context: ScenarioContext): Promise<Observed> {
  const { api, printLine, days, shop, subscribers } = context;
  const opTime = opTimeOf(newestOf(days.scenario));
  const chains = await define(context);
  await defineSources(context);
  await subscribe(context);
  const forgeryStatus = await forge(context);

  await trackFiles(context, chains.visits, opTime, [visitsFile(opTime), clicksFile(opTime)]);
  printLine(`TRAFFIC has its visits. ${(await why(api, "TRAFFIC", opTime)).verdict}`);

  shop.failNext(1);
  const { runId: firstRunId } = await runChain(api, chains.orders, { opTime });
  await printAttempts(context, "orders", firstRunId);
  printLine(`SALES has its orders. ${(await why(api, "SALES", opTime)).verdict}`);

  const missing = async (modelId: ModelId) => (await why(api, modelId, opTime)).missing;
  const waitedFor = { SALES: await missing("SALES"), TRAFFIC: await missing("TRAFFIC") };
  const ran = await announceRegions(context, chains.regions, opTime);
  printLine(`REGIONS, the last table, arrives and triggers: ${ran}`);
  const firstRevenue = await values(api, "KD1001", opTime);
  printLine(`revenue ${firstRevenue}; per visit ${await values(api, "KC2001", opTime)}`);

  // Keeps the order: subscribers are notified of these runs before the next one starts.
  await api.waitUntil(async () => subscribers.received().length >= DELIVERIES_OF_FIRST_RUNS);
  printLine("a late order arrives: ORDERS is loaded again");
  shop.addLateOrder(opTime);
  await runChain(api, chains.orders, { opTime });
  await api.waitUntil(async () => (await generations(api, "SALES", opTime)) === "1 SUCCESS, 2 SUCCESS");
  printLine(`revenue ${await values(api, "KD1001", opTime)}; per visit ${await values(api, "KC2001", opTime)}`);

  const plans = await harvestAll(context, days.scenario);
  await api.waitUntil(async () => (await generations(api, "WORKS", opTime)) === "1 SUCCESS");
  printLine(`works of ${newestOf(days.scenario)}: ${await values(api, "KD1003", opTime)}`);
  await sendLineage(context);
  await leaveOpenProblems(context, chains.export);

  await api.waitUntil(async () => (await countDelivered(context)) === DELIVERIES_EXPECTED);
  // Millrace's own lineage follows each commit, after a moment.
  await api.waitUntil(async () => (await sourcesAbove(api, context.sources, "KD1003")) === "arxiv, crossref, pubmed");
  return { chains, plans, firstRunId, waitedFor, firstRevenue, forgeryStatus };
}

async function define({ api, shop, tablesDir, printLine }: ScenarioContext): Promise<Chains> {
  const create = async (chain: object) => (await api.post<{ chainId: string }>("api/v1/chains", chain)).chainId;
  const chains = {
    orders: await create(ordersChain(shop.url)),
    visits: await create(visitsChain(tablesDir)),
    regions: await create(REGIONS_CHAIN),
    export: await create(exportChain(shop.url)),
  };
  // A COMPUTED indicator needs its parts to exist.
  for (const kpiId of Object.keys(INDICATORS) as KpiId[]) {
    await api.put(`api/v1/kpi/indicators/${kpiId}`, INDICATORS[kpiId]);
  }
  for (const modelId of Object.keys(MODELS) as ModelId[]) {
    await api.put(`api/v1/kpi/models/${modelId}`, MODELS[modelId]);
    await api.post(`api/v1/kpi/models/${modelId}:publish`);
  }
  printLine(
    `defined: ${list("chains", Object.keys(chains))}; ${list("models", Object.keys(MODELS))}; ${list("KPIs", Object.keys(INDICATORS))}`,
  );
  return chains;
}

async function subscribe({ api, subscribers, printLine }: ScenarioContext): Promise<void> {
  for (const { kpiId, team, ...further } of SUBSCRIPTIONS) {
    const { signingKey } = await api.post<{ signingKey?: string }>("api/v1/kpi/subscriptions", {
      kpiId,
      callbackUrl: subscribers.callbackUrl(team),
      secret: subscribers.secret(team),
      teamName: team,
      ...further,
    });
    if (signingKey !== undefined) subscribers.trust(team, signingKey); // Returned only for the first subscription of a callback.
  }
  printLine(`${list("subscribed:", TEAMS)}, each with its own callback`);
}

/** Proves that the subscriber checks signatures: it must reject this one. */
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
  printLine(`finance rejects a forged delivery: ${status}`);
  return String(status);
}

/** Tracks files through all stages. The visits of a file become part of the table; other files are only tracked. */
export async function trackFiles(
  { api, printLine }: Pick<ScenarioContext, "api" | "printLine">,
  chainId: string,
  opTime: string,
  files: readonly TrackedFile[],
): Promise<void> {
  for (const file of files) {
    await api.post("api/v1/pipeline/files/register", file);
    printLine(`registered ${file.filename} with ${counted(file.shards.length, "shard")}`);
    await api.post("api/v1/pipeline/stages/event-ingest/done", { filename: file.filename });
  }
  await workThroughStages(api, {
    shards: files.flatMap(({ shards }) => shards).length,
    async send({ filename, shard }) {
      if (filename !== visitsFile(opTime).filename) return;
      await runChain(api, chainId, { opTime, params: { shard, visits: visitsOf(shard) } });
    },
    onStageDone: (stage) => printLine(`${stage}: all shards done`),
  });
}

export async function printAttempts(
  { api, printLine }: Pick<ScenarioContext, "api" | "printLine">,
  chain: string,
  runId: string,
): Promise<void> {
  for (const { nodeId, attempt, status, error } of await attemptsInOrder(api, runId)) {
    if (status === "SUCCESS") printLine(`${chain}: ${nodeId} succeeded${attempt > 1 ? ` on attempt ${attempt}` : ""}`);
    if (status === "FAILED") printLine(`${chain}: ${nodeId} failed: ${error}`);
  }
}

/** Returns the models that ran: `SALES SUCCESS, TRAFFIC SUCCESS`. */
export async function announceRegions(
  { api }: Pick<ScenarioContext, "api">,
  chainId: string,
  opTime: string,
): Promise<string> {
  await runChain(api, chainId, { opTime });
  return announce(api, "REGIONS", opTime);
}

/** Announces a table, and returns the models that ran. */
export async function announce(api: Api, table: string, opTime: string): Promise<string> {
  const { triggeredModels } = await api.post<{ triggeredModels: { modelId: string; status: string }[] }>(
    "api/open/kpi/srcTableComplete",
    { srcTableName: table, opTime },
  );
  const ran = triggeredModels.map(({ modelId, status }) => `${modelId} ${status}`).toSorted();
  return ran.join(", ") || "none";
}

/** All days but the newest are signed off, an export is refused, and a subscriber is down. */
async function leaveOpenProblems({ api, days, printLine }: ScenarioContext, chainId: string): Promise<void> {
  const newest = opTimeOf(newestOf(days.scenario));
  for (const day of days.scenario.slice(0, -1)) await announce(api, SIGN_OFF, opTimeOf(day));
  printLine(`APPROVED has the works of ${newest}. ${(await why(api, "APPROVED", newest)).verdict}`);
  const { runId } = await runChain(api, chainId, { opTime: newest });
  await printAttempts({ api, printLine }, "export", runId);
  printLine("audit is down; its deliveries are pending");
}

/** `chains orders, visits and regions`. */
function list(noun: string, names: readonly string[]): string {
  return `${noun} ${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""}`;
}

async function countDelivered({ api, subscribers }: ScenarioContext): Promise<number> {
  const lists = await Promise.all(TEAMS.map((team) => deliveriesTo(api, subscribers.callbackUrl(team))));
  return lists.flat().filter(({ status }) => status === "DELIVERED").length;
}

export async function runChain(api: Api, chainId: string, start: object): Promise<{ runId: string; status: string }> {
  const { runId } = await api.post<{ runId: string }>(`api/v1/chains/${chainId}:start`, start);
  return { runId, status: await api.ended(runId) };
}
