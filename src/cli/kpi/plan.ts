/**
 * The plan of `millrace kpi apply`: the differences between the file and the server, as changes in a valid order. Indicators come
 * before the models that feed them, and models before COMPUTED indicators; unpublishing comes before all definitions and
 * publishing after them.
 */
import { isDeepStrictEqual } from "node:util";
import { type Client, pathTo, Refusal, type Request } from "../common/client.ts";
import { EXIT } from "../common/exit-codes.ts";
import type { FieldChange } from "../common/field-changes.ts";
import type { Page } from "../common/paging.ts";
import type { Indicator, Model, Subscription } from "./api.ts";
import type { IndicatorEntry, KpiFile, ModelEntry, SubscriptionEntry } from "./file.ts";

export interface Change {
  action: "create" | "change" | "publish" | "unpublish" | "unchanged";
  kind: "model" | "indicator" | "subscription";
  /** Its name for output. */
  name: string;
  /** Its place in the file. */
  path: string[];
  /** That of a secret is without its values. */
  fields: FieldChange[];
  /** Undefined if it is unchanged. */
  request?: Request;
}

export interface PlanOptions {
  /** Send existing secrets again: whether they changed is unknown. */
  secrets: boolean;
}

/** The defaults of a model. Only the server knows that of `timeoutSeconds`. */
const MODEL_DEFAULTS = {
  description: null,
  grain: null,
  timeZone: "UTC",
  produces: null,
  rerun: "auto",
  retry: null,
  expect: null,
  allowEmpty: false,
};
const DEPENDENCY_DEFAULTS = { optional: false, quietSeconds: 0, deadline: null, grain: null, offset: 0 };
const ENGINE_DEFAULT = "duckdb";
const CALLS_AT_ONCE = 8;
const SUBSCRIPTIONS_SEEN = 1_000;

export async function planOf(client: Client, file: KpiFile, options: PlanOptions): Promise<Change[]> {
  const models = await findAll<Model>(client, Object.keys(file.models), (id) => pathTo`api/v1/kpi/models/${id}`);
  const indicators = await findAll<Indicator>(
    client,
    Object.keys(file.indicators),
    (id) => pathTo`api/v1/kpi/indicators/${id}`,
  );
  const subscriptions = await inTurns(file.subscriptions, (entry) => findSubscription(client, entry));

  const indicatorChange = (id: string) => ofIndicator(id, file.indicators[id] as IndicatorEntry, indicators.get(id));
  const idsOf = (type: IndicatorEntry["type"]) =>
    Object.keys(file.indicators).filter((id) => file.indicators[id]?.type === type);
  const publications = Object.entries(file.models).flatMap(([id, entry]) => ofPublication(id, entry, models.get(id)));
  const republished = new Set(publications.map(({ name }) => name));
  const definitions = inOrder(Object.keys(file.models), (id) => donorsOf(id, file, models))
    .map((id) => ofModel(id, file.models[id] as ModelEntry, models.get(id)))
    .filter(({ action, name }) => action !== "unchanged" || !republished.has(name));
  return [
    ...publications.filter(({ action }) => action === "unpublish"),
    ...idsOf("EXTENDED").map(indicatorChange),
    ...definitions,
    ...inOrder(idsOf("COMPUTED"), (id) => computedIn(file.indicators[id], file)).map(indicatorChange),
    ...publications.filter(({ action }) => action === "publish"),
    ...file.subscriptions.map((entry, index) => ofSubscription(entry, index, subscriptions[index], options)),
  ];
}

function ofModel(id: string, entry: ModelEntry, present: Model | undefined): Change {
  const { publish: _, dependencies, kpis = [], ...rest } = entry;
  const work = { sql: null, chain: null, engine: entry.chain === undefined ? ENGINE_DEFAULT : null };
  const wanted = {
    ...MODEL_DEFAULTS,
    ...work,
    ...rest,
    kpis,
    dependencies: dependencies.map(({ table, ...parts }) => ({ table, ...DEPENDENCY_DEFAULTS, ...parts })),
  };
  const path = ["models", id];
  return changeOf({ kind: "model", name: id, path, fields: differences(present, wanted) }, present, {
    method: "PUT",
    path: pathTo`api/v1/kpi/models/${id}`,
    body: { timeoutSeconds: present?.timeoutSeconds, ...rest, dependencies, kpis },
  });
}

function ofIndicator(id: string, entry: IndicatorEntry, present: Indicator | undefined): Change {
  const fields = differences(present, { expression: null, ...entry });
  return changeOf({ kind: "indicator", name: id, path: ["indicators", id], fields }, present, {
    method: "PUT",
    path: pathTo`api/v1/kpi/indicators/${id}`,
    body: entry,
  });
}

/** A new model is not published. */
function ofPublication(id: string, { publish = true }: ModelEntry, present: Model | undefined): Change[] {
  if (publish === (present?.state === 1)) return [];
  const action = publish ? "publish" : "unpublish";
  const request: Request = { method: "POST", path: `${pathTo`api/v1/kpi/models/${id}`}:${action}` };
  return [{ action, kind: "model", name: id, path: ["models", id], fields: [], request }];
}

/** Missing fields are not changed: the secret may be set elsewhere, and the server may have changed the status. */
function ofSubscription(
  entry: SubscriptionEntry,
  index: number,
  present: Subscription | undefined,
  options: PlanOptions,
): Change {
  const { kpiId, callbackUrl, teamName = "", secret, status, ...rest } = entry;
  const name = `${kpiId} to ${callbackUrl}${teamName === "" ? "" : ` (${teamName})`}`;
  const wanted = { ...rest, ...(status === undefined ? {} : { status: String(status) }) };
  const fields = differences(present, wanted);
  if (present && secret !== undefined && isOtherSecret(secret, present, options)) fields.push({ field: "secret" });
  const changed = Object.fromEntries(fields.map(({ field }) => [field, entry[field as keyof SubscriptionEntry]]));
  const request: Request = present
    ? { method: "PATCH", path: pathTo`api/v1/kpi/subscriptions/${String(present.id)}`, body: changed }
    : { method: "POST", path: "api/v1/kpi/subscriptions", body: entry };
  return changeOf({ kind: "subscription", name, path: ["subscriptions", String(index)], fields }, present, request);
}

function isOtherSecret(secret: string | null, present: Subscription, { secrets }: PlanOptions): boolean {
  if (secret === null) return present.secretType !== null;
  const [type, key] = secret.split(",");
  return secrets || type !== present.secretType || key !== present.secretKey;
}

function changeOf(
  what: Pick<Change, "kind" | "name" | "path" | "fields">,
  present: object | undefined,
  request: Request,
): Change {
  if (!present) return { ...what, action: "create", request };
  return what.fields.length === 0 ? { ...what, action: "unchanged" } : { ...what, action: "change", request };
}

/** Empty for a new one. */
function differences(present: object | undefined, wanted: object): FieldChange[] {
  if (!present) return [];
  const before = present as Readonly<Record<string, unknown>>;
  return Object.entries(wanted).flatMap(([field, to]) => {
    const from = before[field];
    return isSame(from, to) ? [] : [{ field, from, to }];
  });
}

/** Ignores the order of lists. */
function isSame(from: unknown, to: unknown): boolean {
  if (!Array.isArray(from) || !Array.isArray(to)) return isDeepStrictEqual(from, to);
  return from.length === to.length && to.every((item) => from.some((other) => isDeepStrictEqual(item, other)));
}

/** The models that still feed an indicator of this model: they must release it first. */
function donorsOf(id: string, file: KpiFile, models: ReadonlyMap<string, Model>): string[] {
  const wanted = new Set(file.models[id]?.kpis);
  return [...models.values()]
    .filter(({ modelId, kpis }) => modelId !== id && kpis.some((kpi) => wanted.has(kpi)))
    .map(({ modelId }) => modelId);
}

/** The COMPUTED indicators of the file that a formula names, as a word or as a quoted key of `kpi`. */
export function computedIn(entry: IndicatorEntry | undefined, { indicators }: KpiFile): string[] {
  const words = [...(entry?.expression ?? "").matchAll(/"([^"]*)"|'([^']*)'|\w+/g)];
  return words
    .map(([word, double, single]) => double ?? single ?? word)
    .filter((id) => indicators[id]?.type === "COMPUTED");
}

/** Sorts by dependencies. The server reports a cycle. */
function inOrder(ids: readonly string[], beforeOf: (id: string) => readonly string[]): string[] {
  const entered = new Set<string>();
  const ordered: string[] = [];
  function visit(id: string): void {
    if (entered.has(id)) return;
    entered.add(id);
    beforeOf(id).forEach(visit);
    ordered.push(id);
  }
  ids.forEach(visit);
  return ordered;
}

/** The existing ones, by id. */
async function findAll<Found>(client: Client, ids: readonly string[], pathOf: (id: string) => string) {
  const found = await inTurns(ids, async (id) => {
    try {
      return [[id, await client.call<Found>({ method: "GET", path: pathOf(id) })] as const];
    } catch (error) {
      if (error instanceof Refusal && error.exitCode === EXIT.notFound) return [];
      throw error;
    }
  });
  return new Map(found.flat());
}

async function findSubscription(client: Client, entry: SubscriptionEntry): Promise<Subscription | undefined> {
  const { kpiId, callbackUrl, teamName = "" } = entry;
  const { items } = await client.call<Page<Subscription>>({
    method: "GET",
    path: "api/v1/kpi/subscriptions",
    query: { kpiId, callbackUrl, size: SUBSCRIPTIONS_SEEN },
  });
  return items.find((item) => item.teamName === teamName);
}

/** With limited concurrency. */
export async function inTurns<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let from = 0; from < items.length; from += CALLS_AT_ONCE) {
    results.push(...(await Promise.all(items.slice(from, from + CALLS_AT_ONCE).map(work))));
  }
  return results;
}
