/**
 * Resolves the tenant of an event. Most events of Gravitino name it in the namespace of the job only, so every place that can name
 * a tenant is read, and all have to agree.
 */
import type { Caller } from "../../kernel/auth/scopes.ts";
import type { ApiError } from "../../kernel/errors.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { lineageError } from "../catalogue.ts";
import type { Source } from "../extract/index.ts";
import type { ParsedEvent } from "../ingest/event.ts";

/** What the credential of the sender says about source and tenant. */
export interface Credential {
  source: Source | null;
  tenantId: string | null;
  /** What named the tenant, for messages. */
  place: string;
}

/** A place that names a tenant. */
interface Signal {
  tenantId: string;
  place: string;
}

/** How many of the tenants in a conflict are listed: an event may name thousands. */
const TOLD_MAX = 8;
/** A metalake may be named `tenant` too; only digits make it the other form. */
const TENANT_NAMESPACE = /^gravitino:\/\/tenant\/(\d+)(?:\/|$)/;
const METADATA_JOB = "gravitino.";

export function credentialOf({ source, tenantId }: Caller): Credential {
  return { source: source === "GRAVITINO" || source === "COMPUTE_ENGINE" ? source : null, tenantId, place: "the key" };
}

/** Throws TENANT_CONFLICT or TENANT_UNRESOLVED, with what to change. */
export function resolveTenant(event: ParsedEvent, credential: Credential): { tenantId: string; source: Source } {
  const named = signalsOf(event);
  const source = credential.source ?? sourceOf(event, named);
  const { tenantId: bound, place } = credential;
  const signals = bound === null ? named : [...named, { tenantId: bound, place }];
  const [first, ...others] = firstOfEach(signals);
  if (first && others.length > 0) throw conflict([first, ...others]);
  if (source === "COMPUTE_ENGINE" && bound === null) {
    throw unresolved(
      "this key is bound to no tenant, and compute engines do not name theirs",
      "Send with a key that has a tenantId.",
    );
  }
  if (!first) {
    throw unresolved(
      "neither a `gravitino` facet nor a namespace gravitino://tenant/{id} nor the key names one",
      "Name it in the event, or send with a key that has a tenantId.",
    );
  }
  return { tenantId: first.tenantId, source };
}

/** A tenant id as it is kept, or nothing if the value is none. */
export function tenantIdOf(value: unknown): string | undefined {
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(number) && (number as number) >= 0 ? String(number) : undefined;
}

/** What an event calls its tenant, if it does. */
export function introductionOf(event: ParsedEvent): { code: string | undefined; name: string | undefined } {
  const datasets = datasetsOf(event);
  const text = (field: string) =>
    datasets
      .map(({ facet }) => facet?.[field])
      .find((value): value is string => typeof value === "string" && value !== "");
  return { code: text("tenantCode"), name: text("tenantName") };
}

function signalsOf(event: ParsedEvent): Signal[] {
  const datasets = datasetsOf(event);
  return [
    ...datasets.flatMap(({ facet, place }) => facetSignal(facet?.["tenantId"], `${place}/facets/gravitino/tenantId`)),
    ...(event.job ? namespaceSignal(event.job.namespace, "/job/namespace") : []),
    ...datasets.flatMap(({ namespace, place }) => namespaceSignal(namespace, `${place}/namespace`)),
  ];
}

function datasetsOf({ kind, inputs, outputs }: ParsedEvent) {
  const placed = (side: string, datasets: ParsedEvent["inputs"]) =>
    datasets.map(({ namespace, facets }, index) => {
      const facet = facets["gravitino"];
      const place = kind === "DATASET_EVENT" ? "/dataset" : `/${side}/${index}`;
      return { namespace, facet: isRecord(facet) ? facet : undefined, place };
    });
  return [...placed("inputs", inputs), ...placed("outputs", outputs)];
}

function facetSignal(value: unknown, place: string): Signal[] {
  return value === undefined || value === null ? [] : [readSignal(value, place)];
}

function namespaceSignal(namespace: string, place: string): Signal[] {
  const digits = TENANT_NAMESPACE.exec(namespace)?.[1];
  return digits === undefined ? [] : [readSignal(digits, place)];
}

/** One that cannot be read is no reason to go by the others. */
function readSignal(value: unknown, place: string): Signal {
  const tenantId = tenantIdOf(value);
  if (tenantId === undefined) throw unresolved(`${place} holds no tenant id`, "A tenant id is a whole number.");
  return { tenantId, place };
}

/** Of a key that does not say: metadata operations are Gravitino's, and always name their tenant. */
function sourceOf({ job }: ParsedEvent, signals: readonly Signal[]): Source {
  return signals.length > 0 && job?.name.startsWith(METADATA_JOB) ? "GRAVITINO" : "COMPUTE_ENGINE";
}

/** One signal of each tenant that is named. */
function firstOfEach(signals: readonly Signal[]): Signal[] {
  const first = new Map<string, Signal>();
  for (const signal of signals) if (!first.has(signal.tenantId)) first.set(signal.tenantId, signal);
  return [...first.values()];
}

function conflict(signals: readonly Signal[]): ApiError {
  const shown = signals.slice(0, TOLD_MAX);
  const said = shown.map(({ tenantId, place }) => `${tenantId} by ${place}`).join(", ");
  const more = signals.length > shown.length ? `, and ${signals.length - shown.length} more` : "";
  const listed = shown.map(({ tenantId, place }) => ({ tenantId: Number(tenantId), place }));
  return lineageError("TENANT_CONFLICT", { signals: listed }, { said: said + more });
}

function unresolved(reason: string, advice: string): ApiError {
  return lineageError("TENANT_UNRESOLVED", {}, { reason, advice });
}
