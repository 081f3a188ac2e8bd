/**
 * Lets the server check each definition of a file before any is changed: `apply` changes one after the other, and a late refusal
 * would leave the file half applied. The server does not know the rest of the file, so this file accounts for it.
 */
import { drawCycle, findCycle } from "../../kernel/cycle.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { type Client, pathTo, Refusal, type Request } from "../common/client.ts";
import { EXIT } from "../common/exit-codes.ts";
import type { Indicator, Model } from "./api.ts";
import type { KpiFile } from "./file.ts";
import { type Change, computedIn, inTurns } from "./plan.ts";

/** A definition that the server refuses. */
export interface Refused {
  /** Its place in the file. */
  path: string[];
  sentence: string;
  /** As the server answers: `{ error, code, details? }`. */
  body: object;
}

type Parts = Pick<Indicator, "kpiId" | "dependsOn">;
type Checked = { refused: Refused } | { model: Model } | { indicator: Parts } | undefined;

/** Fields that can create or break a cycle. */
const CYCLE_FIELDS = new Set(["type", "expression", "produces", "dependencies"]);

/** All refusals at once, in the order of the changes. */
export async function refusalsOf(client: Client, changes: readonly Change[], file: KpiFile): Promise<Refused[]> {
  const definitions = changes.filter(({ request }) => request?.method === "PUT");
  const released = releasedBy(definitions);
  const checked = await inTurns(definitions, async (change): Promise<Checked> => {
    try {
      const reply = await client.call<Model | Indicator>(checkOf(change, released));
      return change.kind === "model" ? { model: reply as Model } : { indicator: reply as Indicator };
    } catch (error) {
      if (!(error instanceof Refusal) || !isFileError(error)) throw error;
      if (isResolvedByFile(error, change, definitions, released)) return undefined;
      // The other problems of an indicator are found when it is applied; its parts are known from the file.
      if (isDefinedIn(file, error)) return { indicator: indicatorOf(change, file) };
      return { refused: { path: placeOf(error, change, file), sentence: error.message, body: error.body as object } };
    }
  });
  const found = checked.filter((one) => one !== undefined);
  const refused = found.flatMap((one) => ("refused" in one ? one.refused : []));
  const cycles = [
    cycleOfIndicators(found.flatMap((one) => ("indicator" in one ? one.indicator : []))),
    cycleOfModels(found.flatMap((one) => ("model" in one ? one.model : []))),
  ];
  return [...refused, ...cycles.filter((cycle) => cycle !== undefined), ...(await unknownKpis(client, changes, file))];
}

/** Whether the server refuses a name only because the file has not created it yet. */
function isDefinedIn(file: KpiFile, { body }: Refusal): boolean {
  const { problem, what, name } = detailsOf(body);
  return problem === "unknown" && what === "indicator" && kpisOf(file).includes(name as string);
}

/** The indicators that the file creates. */
function kpisOf({ indicators, models }: KpiFile): string[] {
  return [...Object.keys(indicators), ...Object.values(models).flatMap(({ kpis = [] }) => kpis)];
}

function indicatorOf({ name }: Change, file: KpiFile): Parts {
  return { kpiId: name, dependsOn: computedIn(file.indicators[name], file) };
}

/** Subscriptions to indicators that neither the file nor the server has. The server checks the rest when it creates them. */
async function unknownKpis(client: Client, changes: readonly Change[], file: KpiFile): Promise<Refused[]> {
  const known = kpisOf(file);
  const created = changes.filter(({ kind, action }) => kind === "subscription" && action === "create");
  const found = await inTurns(created, async ({ path }): Promise<Refused[]> => {
    const { kpiId = "" } = file.subscriptions[Number(path[1])] ?? {};
    if (known.includes(kpiId)) return [];
    try {
      await client.call({ method: "GET", path: pathTo`api/v1/kpi/indicators/${kpiId}` });
      return [];
    } catch (error) {
      if (!(error instanceof Refusal) || error.exitCode !== EXIT.notFound) throw error;
      const sentence = `${error.message}${didYouMean(kpiId, known)}`;
      return [{ path: [...path, "kpiId"], sentence, body: error.body as object }];
    }
  });
  return found.flat();
}

/** Whether the file is at fault, and not the key or the network. */
export function isFileError({ exitCode }: Refusal): boolean {
  return [EXIT.usage, EXIT.wrongState, EXIT.notFound].some((code) => code === exitCode);
}

/** The place in the file that a refusal is about. */
export function placeOf({ message, body }: Refusal, { path, kind, name }: Change, file: KpiFile): string[] {
  const { kpiId } = detailsOf(body);
  const index = kind === "model" ? (file.models[name]?.kpis ?? []).findIndex((id) => id === kpiId) : -1;
  return index < 0 ? [...path, ...fieldIn(message)] : [...path, "kpis", String(index)];
}

/** The field in a sentence: The field \`dependencies[0].table\` must be ..., or dependencies[0] (DW_X): ... */
function fieldIn(sentence: string): string[] {
  const [, quoted, plain] = /^(?:The field `([^`]+)`|(\w+\[\d+\]))/.exec(sentence) ?? [];
  return (quoted ?? plain ?? "").split(/[.[\]]+/).filter((step) => step !== "");
}

/** Indicators that a model of the file no longer feeds, or that are no longer COMPUTED: `apply` changes that first. */
function releasedBy(definitions: readonly Change[]): Set<string> {
  const released = definitions.flatMap(({ kind, name, fields }) =>
    fields.flatMap(({ field, from, to }) => {
      if (kind === "indicator") return field === "type" && to === "EXTENDED" ? [name] : [];
      return field === "kpis" ? (from as string[]).filter((id) => !(to as string[]).includes(id)) : [];
    }),
  );
  return new Set(released);
}

function checkOf({ kind, request }: Change, released: ReadonlySet<string>): Request {
  const dry = { ...(request as Request), query: { dryRun: true } };
  if (kind !== "model") return dry;
  const { kpis } = dry.body as { kpis: string[] };
  return { ...dry, body: { ...dry.body, kpis: kpis.filter((id) => !released.has(id)) } };
}

/** Whether the server refuses only because it does not know the other changes of the file. */
function isResolvedByFile(
  { body }: Refusal,
  { kind, name }: Change,
  definitions: readonly Change[],
  released: ReadonlySet<string>,
): boolean {
  if ((body as { code?: unknown }).code === "KPI_FED_ALREADY") return kind === "indicator" && released.has(name);
  if (detailsOf(body)["problem"] !== "circle") return false;
  // Another change may break the cycle.
  return definitions.some(
    (other) => other.kind === kind && other.name !== name && other.fields.some(({ field }) => CYCLE_FIELDS.has(field)),
  );
}

function detailsOf(body: unknown): Record<string, unknown> {
  return (body as { details?: Record<string, unknown> } | null)?.details ?? {};
}

/** A cycle among definitions that are each valid on their own. */
function cycleOfIndicators(indicators: readonly Parts[]): Refused | undefined {
  const cycle = findCycle(new Map(indicators.map(({ kpiId, dependsOn }) => [kpiId, dependsOn])));
  const [first] = cycle ?? [];
  if (cycle === undefined || first === undefined) return undefined;
  return cycleRefusal(["indicators", first], `\`${first}\` would be computed from itself: ${drawCycle(cycle)}.`);
}

function cycleOfModels(models: readonly Model[]): Refused | undefined {
  const makers = models.filter(({ produces }) => produces !== null);
  const sources = new Map<string, string[]>();
  for (const { produces, dependencies } of makers) {
    // As on the server: a dependency on an earlier period is not part of a cycle.
    const needs = dependencies.filter(({ offset }) => offset >= 0).map(({ table }) => table);
    sources.set(produces as string, [...(sources.get(produces as string) ?? []), ...needs]);
  }
  const cycle = findCycle(sources);
  const maker = makers.find(({ produces }) => produces === cycle?.[0]);
  if (cycle === undefined || maker === undefined) return undefined;
  return cycleRefusal(["models", maker.modelId], `The tables would wait for themselves: ${drawCycle(cycle)}.`);
}

function cycleRefusal(path: string[], sentence: string): Refused {
  const code = "VALIDATION_FAILED";
  return {
    path,
    sentence: `${sentence} [${code}]`,
    body: { error: sentence, code, details: { problem: "circle" } },
  };
}
