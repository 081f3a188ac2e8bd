/**
 * One page of a source: permit, request, classification, retries. Whatever the source answers, the outcome is a value; only an
 * abort throws.
 */
import { setTimeout as sleepFor } from "node:timers/promises";
import type { Gates } from "../../kernel/gate/gates.ts";
import type { GateSignal, Rejected } from "../../kernel/gate/permits.ts";
import {
  type Outbound,
  type OutboundAnswer,
  OutboundFailed,
  OutboundRefused,
  shownUrl,
} from "../../kernel/net/outbound.ts";
import { retryAfterMs } from "../../kernel/net/retry-after.ts";
import { type Mask, maskOf } from "../../kernel/secrets/mask.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { retryDelayMs } from "../../kernel/work/retry.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { HarvestMetrics } from "../catalogue.ts";
import type { Page, Verdict } from "../decode/index.ts";
import { gateKeysOf } from "../spec/gates.ts";
import type { RenderedRequest, RequestContext } from "../spec/render.ts";
import { RenderError } from "../spec/render-values.ts";
import type { CompiledEndpoint } from "./compiled.ts";
import type { Failures } from "./failures.ts";
import { providerSignal } from "./provider-headers.ts";
import type { RunStats } from "./run-stats.ts";

export interface FetchDeps {
  outbound: Pick<Outbound, "request">;
  gates: Pick<Gates, "take" | "feedback">;
  clock: Clock;
  metrics: HarvestMetrics;
  log: Pick<ServiceLog, "warn">;
  random: () => number;
}

/** The task on whose behalf pages are fetched. */
export interface Requester {
  taskId: string;
  priority: number;
  labels: { source: string; endpoint: string; op: string };
  stats: RunStats;
  failures: Pick<Failures, "add">;
  signal: AbortSignal;
  /** Nothing may be asked any more, as far as this process knows. */
  isPaused(): boolean;
}

export interface Exchange {
  /** Without secrets, for the batch. */
  request: { method: string; url: string; headers: Record<string, string>; body?: string };
  status: number;
  headers: Record<string, string>;
  /** Without secrets, as it is stored. */
  body: Buffer;
  latencyMs: number;
  waitedMs: number;
  ratePerSec: number;
  attempts: number;
  /** When the request was sent, by the database's clock. */
  sentAt: Date;
  /** Null for an anonymous request. */
  credentialVersion: number | null;
}

export type Fetched =
  | { kind: "page"; page: Page; exchange: Exchange }
  | { kind: "restart" | "split"; reason: string; exchange: Exchange | undefined }
  | { kind: "park"; delayMs: number; reason: string; gate?: string }
  | { kind: "failed"; level: string; reason: string; exchange: Exchange | undefined }
  /** All attempts have failed, by what may pass: no connection, no answer, an error of the source. */
  | { kind: "unreachable"; reason: string; exchange: Exchange | undefined };

/** Longer waits give the slot back: the task is queued again. */
const WAIT_MS_MAX = 60_000;
/** A source that is closed for longer is shown as what the task waits for. A wait for a turn is not: it goes on. */
const PAUSE_MS_MAX = 5_000;
/** At least, before a task that was paused is claimed again. */
export const PAUSED_MS = 1_000;
/** A body that keeps coming may take this many times `readTimeoutMs`, which is for the time without a byte. */
const READS_MAX = 4;
const TIMEOUT_MS_MAX = 600_000;
/** After the time-out of a request, to free its slot. */
const RELEASE_MS = 30_000;
/** Answers that ask for patience are not failures, but they end. */
const THROTTLED_MAX = 20;
const PARK_THROTTLED_MS = 60_000;
const RETRY_AFTER_MS_MAX = 86_400_000;

export interface PageRequest {
  endpoint: CompiledEndpoint;
  context: RequestContext;
  /** The page cannot be asked for twice once a request for it was sent. */
  isSingleUse: boolean;
  /** The first page of the list, or its probe. */
  isStart: boolean;
  /** The credential of this moment, if it is another than that of the context. */
  renewed?: () => Promise<RequestContext["credential"]>;
}

export async function fetchPage(deps: FetchDeps, requester: Requester, page: PageRequest): Promise<Fetched> {
  const fetched = await fetchOrFail(deps, requester, page);
  if (fetched.kind !== "page" && fetched.kind !== "park") {
    requester.failures.add({ action: fetched.kind.toUpperCase(), ...fetched });
  }
  return fetched;
}

async function fetchOrFail(deps: FetchDeps, requester: Requester, page: PageRequest): Promise<Fetched> {
  try {
    return await fetchRendered(deps, requester, page, page.endpoint.render(page.context));
  } catch (error) {
    if (!(error instanceof RenderError)) throw error;
    return { kind: "failed", level: "L2", reason: `the request cannot be made: ${error.message}`, exchange: undefined };
  }
}

async function fetchRendered(
  deps: FetchDeps,
  requester: Requester,
  page: PageRequest,
  rendered: RenderedRequest,
): Promise<Fetched> {
  const { endpoint, context } = page;
  const { spec } = endpoint;
  const { stats, labels, signal } = requester;
  const mask = maskOf(rendered.secrets);
  let throttled = 0;
  const countFailed = (failed: { reason: string; level: string }) => {
    stats.failed(failed);
    deps.metrics.count("patra_ingest_errors_total", { ...labels, level: failed.level });
  };
  for (let attempt = 1; ; ) {
    const once = await exchangeOnce(deps, requester, page, { rendered, mask, attempt });
    if (once.kind === "failed") countFailed(once);
    if (once.kind === "failed" && once.level === "L4" && once.exchange) {
      // The credential may have been replaced while the request was under way, or since it was read.
      const credential = await page.renewed?.();
      if (!credential) return once;
      requester.failures.add({ action: "RETRY", ...once });
      const { renewed: _, ...again } = { ...page, context: { ...context, credential } };
      return fetchRendered(deps, requester, again, endpoint.render(again.context));
    }
    if (once.kind !== "retry") return once;
    if (once.isThrottled) {
      throttled += 1;
      stats.throttled += 1;
      deps.metrics.count("patra_ingest_429_total", labels);
      if (throttled > THROTTLED_MAX) {
        const [gate = ""] = gateKeysOf(spec.rateLimit, context.credential !== undefined);
        return { kind: "park", delayMs: PARK_THROTTLED_MS, gate, reason: `the source throttles: ${once.reason}` };
      }
    } else {
      const delayMs = retryDelayMs(spec.retry, attempt, deps.random);
      countFailed(once);
      if (page.isSingleUse && once.isSent) {
        return { kind: "restart", reason: `${once.reason}; its token can be used once`, exchange: once.exchange };
      }
      if (delayMs === undefined) {
        const { isUnreachable, exchange } = once;
        const reason = `${once.reason} (${attempt} attempts)`;
        return isUnreachable
          ? { kind: "unreachable", reason, exchange }
          : { kind: "failed", level: once.level, reason, exchange };
      }
      attempt += 1;
      requester.failures.add({ action: "RETRY", ...once });
      deps.metrics.count("patra_ingest_retries_total", labels);
      await sleepFor(delayMs, undefined, { signal });
    }
    stats.retries += 1;
  }
}

interface Retry {
  kind: "retry";
  reason: string;
  level: string;
  /** The source may have acted on the request. */
  isSent: boolean;
  isThrottled: boolean;
  /** The source is down, rather than that its answer cannot be read. */
  isUnreachable: boolean;
  exchange: Exchange | undefined;
}

const RETRY = { kind: "retry", level: "L1", isThrottled: false } as const;

async function exchangeOnce(
  deps: FetchDeps,
  requester: Requester,
  {
    endpoint,
    isStart,
    context: {
      isProbe = false,
      credential,
      page: { ids = [] },
    },
  }: PageRequest,
  { rendered, mask, attempt }: { rendered: RenderedRequest; mask: Mask; attempt: number },
): Promise<Fetched | Retry> {
  const { spec } = endpoint;
  const { signal, stats, labels } = requester;
  const keys = gateKeysOf(spec.rateLimit, credential !== undefined);
  const { cost, priceUsdMicros, retryAfterOnSuccess = true } = spec.rateLimit;
  const spend = { credits: cost, ...(priceUsdMicros === undefined ? {} : { usdMicros: priceUsdMicros }) };
  // A redirect is another request to the source, and when it comes it is too late to wait for its turn.
  const gates = keys.map((key) => ({ key, cost: cost * (1 + spec.http.redirects), spend }));
  const timeoutMs = Math.min(spec.http.connectTimeoutMs + READS_MAX * spec.http.readTimeoutMs, TIMEOUT_MS_MAX);
  const permit = await deps.gates.take(
    { task: requester.taskId, gates, priority: requester.priority, slotTtlMs: timeoutMs + RELEASE_MS },
    { maxWaitMs: WAIT_MS_MAX, maxPauseMs: PAUSE_MS_MAX, signal },
  );
  if (permit.kind === "rejected") {
    return { kind: "park", delayMs: permit.retryAfterMs, gate: permit.key, reason: waitReason(permit) };
  }
  // Tasks that waited for their turn when access was refused send nothing more.
  if (requester.isPaused()) {
    await permit.release();
    return { kind: "park", delayMs: PAUSED_MS, reason: "it was paused" };
  }
  const startedMs = performance.now();
  stats.requests += 1;
  stats.waitedMs += permit.waitedMs;
  let answer: OutboundAnswer;
  try {
    answer = await deps.outbound.request(outboundRequest(rendered, spec.http, timeoutMs, signal));
  } catch (error) {
    signal.throwIfAborted();
    const reason = mask.text(`${rendered.method} ${shownUrl(rendered.url)}: ${messageOf(error)}`);
    if (error instanceof OutboundRefused) return { kind: "failed", level: "L4", reason, exchange: undefined };
    if (error instanceof OutboundFailed && error.reason === "too-large") {
      return { kind: "failed", level: "L2", reason: `${reason} (responseBytesMax)`, exchange: undefined };
    }
    const isSent = !(error instanceof OutboundFailed) || error.sent;
    const isUnreachable = !(error instanceof OutboundFailed) || error.reason !== "unreadable";
    return { ...RETRY, reason, isSent, isUnreachable, exchange: undefined };
  } finally {
    await permit.release();
  }
  const latencyMs = performance.now() - startedMs;
  stats.latency(latencyMs);
  deps.metrics.observe("patra_ingest_http_latency_ms", labels, latencyMs);
  const { status, headers } = answer;
  const exchange: Exchange = {
    request: requestShown(rendered, mask),
    status,
    headers: mask.json(headers) as Record<string, string>,
    body: mask.bytes(answer.body),
    latencyMs,
    waitedMs: permit.waitedMs,
    ratePerSec: permit.ratePerSec,
    attempts: attempt,
    sentAt: new Date(permit.dueAtMs),
    credentialVersion: credential?.version ?? null,
  };
  stats.bytes += answer.body.length;
  const shown = mask.text(`${rendered.method} ${shownUrl(rendered.url)} answered ${status}`);
  if (answer.truncated && status < 400) {
    const reason = `${shown}: the body is longer than ${spec.http.responseBytesMax} bytes (responseBytesMax)`;
    return { kind: "failed", level: "L2", reason, exchange };
  }

  // Decoded without secrets as well: a source may repeat a key in a record, a token or an error.
  const { verdict, page, isReadable } = read(endpoint, isProbe, { status, headers, body: exchange.body, attempt, ids });
  const askedMs = retryAfterMs(headers["retry-after"], deps.clock.now(), RETRY_AFTER_MS_MAX);
  const [widest = ""] = keys;
  if (verdict.action === "RATE_LIMITED") {
    const cooldownMs = askedMs > 0 ? askedMs : (verdict.cooldownSec ?? 0) * 1_000;
    await tellGate(deps, widest, { kind: "throttled", ...(cooldownMs > 0 ? { retryAfterMs: cooldownMs } : {}) });
  } else if (askedMs > 0 && (retryAfterOnSuccess || verdict.action === "RETRY")) {
    await tellGate(deps, widest, { kind: "wait", retryAfterMs: askedMs });
  }
  await tellGate(deps, widest, providerSignal(headers, deps.clock.now(), spec.rateLimit.headerWindowMs));

  const reason = `${shown}: ${mask.text(verdict.reason)}`;
  // Of an answer with 200 that cannot be read, the definition is the likelier cause.
  const isUnreachable = status >= 400 || isReadable;
  const retry: Retry = { ...RETRY, level: verdict.level ?? "L1", reason, isSent: true, isUnreachable, exchange };
  switch (verdict.action) {
    case "OK":
    case "IGNORE_EMPTY":
    case "DELETED":
      // Such as another host, or https: every record would be deleted.
      if (verdict.action === "DELETED" && isSamePath(rendered.url, headers["location"])) {
        return { kind: "failed", level: "L2", reason: `${shown}: it redirects to the same record`, exchange };
      }
      if (!page) throw new Error(`${verdict.action} has no page`);
      return { kind: "page", page, exchange };
    case "RETRY":
      return retry;
    case "RATE_LIMITED":
      return { ...retry, level: "L1", isSent: false, isThrottled: true };
    case "RESTART_SLICE":
      // Where no token was sent, none is invalid, and the slice is at its start.
      return isStart && status >= 500 ? retry : { kind: "restart", reason, exchange };
    case "SPLIT_SLICE":
      return { kind: "split", reason, exchange };
    case "FAIL":
      return { kind: "failed", level: verdict.level ?? "L2", reason, exchange };
  }
}

function isSamePath(url: string, location: string | undefined): boolean {
  if (location === undefined || !URL.canParse(location, url)) return false;
  return new URL(location, url).pathname === new URL(url).pathname;
}

/** The answer is worth more than what it says of limits. */
async function tellGate({ gates, log }: FetchDeps, key: string, signal: GateSignal | undefined): Promise<void> {
  try {
    if (signal) await gates.feedback(key, signal);
  } catch (err) {
    log.warn({ err, gate: key, signal }, "a gate did not take what a source says of its limits");
  }
}

/** A probe is a page without items. */
function read(
  { decoder }: CompiledEndpoint,
  isProbe: boolean,
  response: Parameters<CompiledEndpoint["decoder"]["read"]>[0],
): { verdict: Verdict; page?: Page; isReadable: boolean } {
  if (!isProbe) return decoder.read(response);
  const { verdict, total, isReadable } = decoder.readProbe(response);
  return {
    verdict,
    isReadable,
    page: { document: null, items: [], warnings: [], ...(total === undefined ? {} : { total }) },
  };
}

function requestShown({ method, url, headers, body }: RenderedRequest, mask: Mask): Exchange["request"] {
  return mask.json({ method, url, headers, ...(body === undefined ? {} : { body }) }) as Exchange["request"];
}

function outboundRequest(
  { method, url, headers, body }: RenderedRequest,
  http: CompiledEndpoint["spec"]["http"],
  timeoutMs: number,
  signal: AbortSignal,
): Parameters<Outbound["request"]>[0] {
  return {
    method,
    url,
    headers,
    ...(body === undefined ? {} : { body }),
    timeoutMs,
    connectTimeoutMs: http.connectTimeoutMs,
    readTimeoutMs: http.readTimeoutMs,
    decompress: http.compression,
    bodyLimitBytes: http.responseBytesMax,
    redirects: http.redirects,
    ...(http.proxy === undefined ? {} : { proxy: http.proxy }),
    signal,
  };
}

function waitReason({ reason, key, soft }: Rejected): string {
  switch (reason) {
    case "QUOTA":
      return soft ? `the rest of the quota of ${key} is held back` : `the quota of ${key} is spent`;
    case "COOLDOWN":
      return `the source asked for a pause of ${key}`;
    case "SLOTS":
      return `all places of ${key} are taken`;
    case "OVER_DEADLINE":
      return `the rate of ${key} is used up`;
  }
}
