/** Harvests of simulated sources by a whole Millrace: the shipped definitions, pointed at a simulator, with its rates lifted. */
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import type { Api } from "../../test/client.ts";
import { until } from "../../test/until.ts";
import { SIMULATORS, type Simulator, type SimulatorKind, type SimulatorOptions } from "../simulators/index.ts";

export type SourceName = "crossref" | "pubmed" | "arxiv" | "europepmc" | "openalex";

/** With short pages, also where the source decides how long they are. */
export function startSimulatorOf(
  kind: SourceName,
  options: SimulatorOptions & { pageSize?: number; completeListSize?: boolean },
): Promise<Simulator> {
  const whole = { pageSize: 40, ...options };
  return (SIMULATORS[kind] as SimulatorKind).start(whole);
}

interface Definition {
  source: string;
  endpoints: Record<string, Record<string, Record<string, unknown>>>;
  defaults?: Record<string, Record<string, unknown>>;
}

/** One that is shipped. `change` is merged into every endpoint, section by section. */
async function definitionOf(source: string, change: Record<string, unknown> = {}): Promise<Definition> {
  const definition = parse(
    await readFile(new URL(`../../sources/${source}.yaml`, import.meta.url), "utf8"),
  ) as Definition;
  const fast = {
    rateLimit: { refillRatePerSec: 5_000, providerRatePerSec: 5_000, concurrency: 50, burstCapacity: 100 },
    retry: { baseMs: 5, capMs: 50, maxAttempts: 8 },
  };
  for (const endpoint of Object.values(definition.endpoints)) {
    const isDetail = (endpoint["role"] as unknown) === "DETAIL";
    for (const [section, fields] of Object.entries({ ...fast, ...change })) {
      if (isDetail && ["window", "pagination", "landing", "slicing", "update"].includes(section)) continue;
      const isSection = typeof fields === "object" && fields !== null && !Array.isArray(fields);
      endpoint[section] = isSection ? { ...endpoint[section], ...fields } : (fields as never);
    }
    delete endpoint["rateLimit"]?.["refillRateWithCredential"];
  }
  delete definition.defaults?.["rateLimit"]?.["refillRateWithCredential"];
  return definition;
}

let applied = 0;

/** Applies it under a name of its own, so that no test sees the records of another. Answers the name. */
export async function applySource(
  api: Api,
  kind: string,
  simulator: Pick<Simulator, "baseUrl">,
  change: Record<string, unknown> = {},
): Promise<string> {
  applied += 1;
  const number = applied;
  const source = `${kind}-${number}`;
  const definition = await definitionOf(kind, change);
  for (const [index, endpoint] of Object.values(definition.endpoints).entries()) {
    if (endpoint["landing"]) endpoint["landing"]["table"] = `${kind}_${number}${index === 0 ? "" : `_${index}`}`;
  }
  await apply(api, { ...definition, source }, simulator);
  return source;
}

async function apply(api: Api, definition: Definition, { baseUrl }: Pick<Simulator, "baseUrl">): Promise<void> {
  const path = `/api/v1/harvest/registry/sources/${definition.source}?baseUrl=${encodeURIComponent(baseUrl)}`;
  const answer = await api.put(path, definition);
  if (answer.status >= 300) throw new Error(`${definition.source} was refused: ${JSON.stringify(answer.body)}`);
}

export interface PlanReply {
  planId: string;
  status: string;
  reconciliation: Record<string, number>;
  slices: Record<string, number>;
  [field: string]: unknown;
}

export async function plan(api: Api, body: object): Promise<PlanReply> {
  const answer = await api.post<PlanReply>("/api/v1/harvest/plans", { operation: "HARVEST", ...body });
  if (answer.status !== 201) throw new Error(`the plan was refused: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** The plan when it has ended. */
export function endOf(api: Api, planId: string, timeoutMs = 60_000): Promise<PlanReply> {
  return until(
    async () => {
      const { body } = await api.get<PlanReply>(`/api/v1/harvest/plans/${planId}`);
      return ["COMPLETE", "FAILED", "CANCELLED"].includes(body.status) && body;
    },
    `the end of plan ${planId}`,
    timeoutMs,
  );
}

export interface StoredRecord {
  key: string;
  version: number;
  deleted: boolean;
  data: Record<string, unknown>;
}

/**
 * The records of a source, by following `next` until there are `count`. Open transactions, also those of other tests on the same
 * Postgres, hold the feed back for a while.
 */
export async function recordsOf(api: Api, source: string, count: number): Promise<StoredRecord[]> {
  const found = new Map<string, StoredRecord>();
  let after = "";
  return until(async () => {
    const { body } = await api.get<{ items: StoredRecord[]; next: string }>(
      `/api/v1/harvest/records?source=${source}&size=1000${after}`,
    );
    for (const item of body.items) found.set(item.key, item);
    after = `&after=${encodeURIComponent(body.next)}`;
    return body.items.length === 0 && found.size >= count && [...found.values()];
  }, `${count} records of ${source}`);
}

export interface Identity {
  id: string;
  content: string;
  deleted: boolean;
}

/** What is stored of a source, in the words of its simulator. */
export async function storedOf(api: Api, kind: SourceName, source: string, count: number): Promise<Identity[]> {
  return (await recordsOf(api, source, count)).map((record) => identityOf(kind, record)).sort(byId);
}

/** What has to be stored of it. */
export function expectedOf(simulator: Pick<Simulator, "records">): Identity[] {
  return simulator
    .records()
    .map(({ id, content, deleted }) => ({ id, content: deleted ? "undefined" : content, deleted }))
    .sort(byId);
}

function byId(one: Identity, other: Identity): number {
  return one.id < other.id ? -1 : 1;
}

/** The window of all days of a simulator. */
export function windowOf({ days }: Pick<Simulator, "days">): { from: string; to: string } {
  const last = days.at(-1) ?? "";
  const to = new Date(Date.parse(last) + 86_400_000).toISOString().slice(0, 10);
  return { from: days[0] ?? "", to };
}

/** What a source's record is called and says, in the words of its simulator. */
export function identityOf(kind: SourceName, { key, data, deleted }: StoredRecord): Identity {
  const first = (value: unknown, ...path: string[]): unknown =>
    path.reduce<unknown>((at, name) => {
      const found = (at as Record<string, unknown> | undefined)?.[name];
      return Array.isArray(found) ? found[0] : found;
    }, value);
  const text = (value: unknown) =>
    typeof value === "object" && value !== null ? (value as { "#text": string })["#text"] : value;
  switch (kind) {
    case "crossref":
    case "europepmc":
    case "openalex":
      return { id: key, content: String(first(data, "title")), deleted };
    case "pubmed": {
      const article =
        first(data, "MedlineCitation", "Article", "ArticleTitle") ?? first(data, "BookDocument", "ArticleTitle");
      return { id: key, content: String(text(article)), deleted };
    }
    case "arxiv":
      return {
        id: key.replace("oai:arXiv.org:", ""),
        content: String(text(first(data, "metadata", "arXiv", "title"))),
        deleted,
      };
  }
}
