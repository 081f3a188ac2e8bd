/**
 * The routes that take events: the specified path, and those that stock OpenLineage clients post to. A client drops an event
 * for good at any 4xx, so only an event that can never be taken gets one; "not now" is always a 503 with Retry-After.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { isTimedOut, isUnavailable } from "../../kernel/data/db.ts";
import { ApiError, invalid, kernelError } from "../../kernel/errors.ts";
import { valueOf } from "../../kernel/http/body.ts";
import { errors } from "../../kernel/http/schemas.ts";
import type { Http } from "../../kernel/http/server.ts";
import { JSON_LIMITS } from "../../kernel/json/complexity.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type LineageMetrics, lineageError } from "../catalogue.ts";
import { microsOf } from "../graph/micros.ts";
import type { LineageSettings } from "../settings.ts";
import type { TenantRate } from "../tenants/rate.ts";
import { TenantParams } from "../tenants/schemas.ts";
import { requireTenantScope } from "../tenants/scope.ts";
import { type Credential, credentialOf, introductionOf, resolveTenant } from "../tenants/tenancy.ts";
import type { Tenants } from "../tenants/tenants.ts";
import type { Admission } from "./admission.ts";
import { useEventTexts } from "./body.ts";
import { parseEvent } from "./event.ts";
import type { Ingest, Taken } from "./ingest.ts";
import { elementsOf } from "./json-elements.ts";
import * as schemas from "./schemas.ts";

export interface IngestRoutesDeps {
  ingest: Ingest;
  tenants: Tenants;
  rate: TenantRate;
  admission: Admission;
  metrics: LineageMetrics;
  clock: Clock;
  settings: Pick<LineageSettings, "eventBytesMax" | "futureToleranceSeconds">;
}

const RETRY_AFTER_SECONDS = 2;
/** Characters of a batch, some milliseconds' worth: then others have their turn, as the transaction of the batch before. */
const READ_AT_ONCE = 65_536;
/** Of a batch at a time: enough to share their commits, few against what may wait to be written. */
const TAKEN_AT_ONCE = 100;

/** Needs a scope of its own under `/api`: all bodies in it are read as text. */
export function ingestRoutes(api: Http, deps: IngestRoutesDeps): void {
  const { ingest, tenants, rate, admission, metrics, clock, settings } = deps;
  const config = { scope: "lineage:write", busyStatus: 503 } as const;
  const ofClients = { ...config, openQuery: true } as const;
  const tags = ["lineage"];

  async function limitOf({ caller: { tenantId } }: FastifyRequest): Promise<number> {
    // Of a caller that is bound to none, the tenant is known only when the event has been read.
    const tenant = tenantId === null ? undefined : await tenants.find(tenantId);
    return tenant?.bodyLimitBytes ?? settings.eventBytesMax;
  }
  useEventTexts(api, limitOf);
  // Before the body is read: one tenant's flood waits outside, and not in memory.
  api.addHook("preParsing", async (request, reply) => admission.enter(request, reply, await limitOf(request)));

  for (const path of ["/openlineage", "/v1/lineage"]) {
    api.post(
      path,
      {
        config: ofClients,
        schema: {
          tags,
          summary: "Take an OpenLineage event: of a run, a dataset or a job, by its structure",
          description:
            "201 says that the event is kept and applied to the graph, 202 that it is kept: its tenant is not READY, or it could not be applied and is a dead letter now. " +
            "The same event again is not applied again. The body may be compressed (`Content-Encoding: gzip`).",
          querystring: schemas.ClientQuery,
          body: schemas.EventText,
          response: { 201: schemas.TakenReply, 202: schemas.TakenReply, ...errors(400) },
        },
      },
      async (request, reply) => {
        const text = request.body ?? "";
        return answerOne(reply, await takeOne(text, { ...credentialOf(request.caller), baseline: false }));
      },
    );
  }

  api.post(
    "/v1/lineage/batch",
    {
      config: ofClients,
      schema: {
        tags,
        summary:
          "Take an array of OpenLineage events, each on its own: one that is refused does not hold up the others",
        querystring: schemas.ClientQuery,
        body: schemas.EventsText,
        response: { 200: schemas.BatchReply, ...errors(400) },
      },
    },
    async (request) => {
      return takeBatch(request.body ?? "", { ...credentialOf(request.caller), baseline: false }, request);
    },
  );

  api.post(
    "/v1/lineage/tenants/:tenantId/baseline",
    {
      config,
      schema: {
        tags,
        summary:
          "Take an event of the full sync, or an array of them; they are applied at once, while the tenant is SYNCING",
        params: TenantParams,
        body: schemas.EventOrEventsText,
        response: {
          200: schemas.BatchReply,
          201: schemas.TakenReply,
          202: schemas.TakenReply,
          ...errors(400, 404, 409),
        },
      },
    },
    async (request, reply) => {
      const { caller, params } = request;
      const { tenantId } = params;
      requireTenantScope(caller, tenantId);
      const { state } = await tenants.get(tenantId);
      if (state !== "SYNCING") {
        const hint = `Begin with POST /api/v1/lineage/tenants/${tenantId}:sync-start.`;
        throw lineageError(
          "TENANT_WRONG_STATE",
          { tenantId: Number(tenantId), state },
          { verb: "take a baseline of", hint },
        );
      }
      const as = { ...credentialOf(caller), tenantId, place: "the address", baseline: true };
      const text = request.body ?? "";
      if (isArray(text)) return takeBatch(text, as, request);
      return answerOne(reply, await takeOne(text, as));
    },
  );

  function takeOne(text: string, as: Sender): Promise<Taken> {
    const value = valueOf(text, JSON_LIMITS);
    if (Array.isArray(value)) {
      throw invalid("The body is an array, but this takes one event; send arrays to /api/v1/lineage/batch");
    }
    return take(prepare(value, text, as), as);
  }

  async function takeBatch(text: string, as: Sender, request: FastifyRequest): Promise<schemas.BatchReply> {
    const prepared = await prepareBatch(text, as);
    const outcomes: PromiseSettledResult<Taken>[] = [];
    for (let first = 0; first < prepared.length; first += TAKEN_AT_ONCE) {
      const some = prepared.slice(first, first + TAKEN_AT_ONCE);
      outcomes.push(...(await Promise.allSettled(some.map((one) => take(one, as)))));
    }
    return replyTo(
      outcomes.map((outcome) => (outcome.status === "fulfilled" ? undefined : asApiError(outcome.reason, request))),
    );
  }

  /**
   * Reads all of them before the first is taken, so that a body which is no JSON is refused whole; and each by itself, so that of
   * a large batch only what is needed of each stays in memory.
   */
  async function prepareBatch(text: string, as: Sender): Promise<(Admissible | Refused)[]> {
    const elements = elementsOf(text, schemas.BATCH_EVENTS_MAX);
    if (!elements) throw notAnArray(text);
    if (elements.length > schemas.BATCH_EVENTS_MAX) {
      throw invalid(`The batch has more than ${schemas.BATCH_EVENTS_MAX} events, which are the most it may have`);
    }
    const prepared: (Admissible | Refused)[] = [];
    let read = 0;
    for (const element of elements) {
      prepared.push(prepare(elementValue(element, text), element, as));
      read += element.length;
      if (read < READ_AT_ONCE) continue;
      await new Promise(setImmediate);
      read = 0;
    }
    return prepared;
  }

  /** Parses an event and finds its tenant, without the database. */
  function prepare(value: unknown, text: string, as: Sender): Admissible | Refused {
    try {
      const event = parseEvent(value, microsOf(clock.now() + settings.futureToleranceSeconds * 1_000));
      const { tenantId, source } = resolveTenant(event, as);
      const prepared = ingest.prepare(tenantId, { event, body: text, source, baseline: as.baseline });
      return { tenantId, introduction: introductionOf(event), prepared, bytes: Buffer.byteLength(text) };
    } catch (refused) {
      return { refused };
    }
  }

  async function take(one: Admissible | Refused, as: Sender): Promise<Taken> {
    let tenantId = as.tenantId ?? "";
    try {
      if ("refused" in one) throw one.refused;
      const { introduction, prepared, bytes } = one;
      const tenant = await tenants.admit(one.tenantId, () => introduction);
      tenantId = tenant.id;
      const limit = tenant.bodyLimitBytes ?? settings.eventBytesMax;
      if (bytes > limit) throw kernelError("BODY_TOO_LARGE", { limit });
      rate.take(tenant);
      return await ingest.take(tenant, prepared);
    } catch (error) {
      const { code } = refusalOf(error);
      metrics.count("millrace_lineage_refused_total", { tenant: tenantId, code });
      throw error;
    }
  }
}

/** Who sends, and whether it is a full sync. */
interface Sender extends Credential {
  baseline: boolean;
}

/** An event for whose tenant is still to be asked. */
interface Admissible {
  tenantId: string;
  introduction: ReturnType<typeof introductionOf>;
  prepared: ReturnType<Ingest["prepare"]>;
  bytes: number;
}

interface Refused {
  refused: unknown;
}

const isArray = (text: string): boolean => /^[ \t\r\n]*\[/.test(text);

function elementValue(element: string, text: string): unknown {
  try {
    return valueOf(element, JSON_LIMITS);
  } catch (error) {
    throw error instanceof ApiError && error.code === "BODY_TOO_COMPLEX" ? error : notAnArray(text);
  }
}

/** Throws with the place in the whole text, where that is no JSON. */
function notAnArray(text: string): ApiError {
  valueOf(text, JSON_LIMITS);
  return invalid("The body must be an array of events");
}

/** The error as the client gets it; an unexpected one is logged. */
function asApiError(error: unknown, { log, id }: FastifyRequest): ApiError {
  const refusal = refusalOf(error, id);
  if (refusal.code === "INTERNAL") log.error({ err: error, requestId: id }, "an event of a batch failed");
  return refusal;
}

function refusalOf(error: unknown, requestId = ""): ApiError {
  if (error instanceof ApiError) return error;
  if (isUnavailable(error) || isTimedOut(error))
    return kernelError("DATABASE_UNAVAILABLE", { seconds: RETRY_AFTER_SECONDS });
  return kernelError("INTERNAL", { requestId });
}

function answerOne(reply: FastifyReply, taken: Taken): FastifyReply {
  return reply.code(taken.state === "APPLIED" ? 201 : 202).send(taken);
}

/** By the OpenLineage specification, which knows no third status for a batch of which nothing was taken. */
function replyTo(outcomes: readonly (ApiError | undefined)[]): schemas.BatchReply {
  const failed = outcomes.flatMap((error, index) =>
    error ? [{ index, reason: error.message, retriable: error.status >= 500 }] : [],
  );
  const retriable = failed.filter((event) => event.retriable).length;
  return {
    status: failed.length === 0 ? "success" : "partial_success",
    summary: {
      received: outcomes.length,
      successful: outcomes.length - failed.length,
      failed: failed.length,
      retriable,
      non_retriable: failed.length - retriable,
    },
    failed_events: failed,
  };
}
