/** One delivery attempt: builds the request from payload, secret and signatures, sends it, and answers the result. */

import { type Outbound, type OutboundAnswer, OutboundRefused } from "../../kernel/net/outbound.ts";
import { retryAfterMs } from "../../kernel/net/retry-after.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { oneLine } from "../../kernel/text/sentences.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Payload } from "../events.ts";
import { redactor } from "../secrets/redact.ts";
import { bodyFields, type Secret } from "../secrets/secret.ts";
import { signatureHeaders } from "../secrets/signing.ts";
import { WAIT_MAX_MS } from "./retries.ts";

/** The address of a message, with its secret and signing keys. */
export interface Target {
  url: string;
  secret: Secret | undefined;
  /** One signature for each. */
  signingKeys: readonly string[];
}

export interface Message {
  /** The same for all attempts. */
  id: string;
  payload: Payload;
}

/** The result of an attempt. Contains no secret. */
export interface Attempt {
  at: Date;
  durationMs: number;
  statusCode: number | null;
  /** Null when it was delivered. */
  error: string | null;
  /** The beginning of the answer's body. */
  answer: string | null;
  /** The `Retry-After` of the receiver, 0 if there is none. */
  retryAfterMs: number;
  /** The address may not be called, so a retry would not help. */
  refused: boolean;
}

export interface SendDeps {
  outbound: Outbound;
  clock: Clock;
  timeoutMs: number;
}

const ANSWER_LIMIT_BYTES = 65_536;
const ANSWER_LENGTH_KEPT = 1_000;
const ERROR_LENGTH_MAX = 2_000;

/** Throws only when the signal aborts. */
export async function send(deps: SendDeps, target: Target, message: Message, signal: AbortSignal): Promise<Attempt> {
  const startedMs = deps.clock.now();
  const startedAt = performance.now();
  const redact = redactor(target.secret);
  const attempt = (fields: Partial<Attempt>): Attempt => ({
    at: new Date(startedMs),
    durationMs: Math.round(performance.now() - startedAt),
    statusCode: null,
    error: null,
    answer: null,
    retryAfterMs: 0,
    refused: false,
    ...fields,
  });
  try {
    const answer = await request(deps, target, message, startedMs, signal);
    const { status } = answer;
    return attempt({
      statusCode: status,
      error: isSuccess(status) ? null : `The receiver answered ${status}${hintFor(status)}.`,
      answer: beginningOf(redact(new TextDecoder().decode(answer.body))),
      retryAfterMs: isSuccess(status) ? 0 : retryAfterMs(answer.headers["retry-after"], deps.clock.now(), WAIT_MAX_MS),
    });
  } catch (error) {
    if (signal.aborted) throw error;
    const sentence = redact(messageOf(error)).slice(0, ERROR_LENGTH_MAX);
    return attempt({ error: sentence, refused: error instanceof OutboundRefused });
  }
}

function request(
  { outbound, timeoutMs }: SendDeps,
  { url, secret, signingKeys }: Target,
  { id, payload }: Message,
  nowMs: number,
  signal: AbortSignal,
): Promise<OutboundAnswer> {
  const body = JSON.stringify(secret?.type === "Body" ? { ...payload, ...added(payload, secret.value) } : payload);
  return outbound.request({
    method: "POST",
    url: secret?.type === "Query" ? withQuery(url, secret) : url,
    headers: {
      "content-type": "application/json",
      ...(secret?.type === "Header" ? { [secret.key.toLowerCase()]: secret.value } : {}),
      ...signatureHeaders({ id, timestamp: Math.floor(nowMs / 1_000), body }, signingKeys),
    },
    body,
    timeoutMs,
    bodyLimitBytes: ANSWER_LIMIT_BYTES,
    signal,
  });
}

/** Fields of the event are never replaced. */
function added(payload: Payload, value: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(bodyFields(value)).filter(([name]) => !Object.hasOwn(payload, name)));
}

/** Appends to the query of the URL, which stays as written. */
function withQuery(text: string, { key, value }: Secret): string {
  const url = new URL(text);
  url.search += `${url.search === "" ? "?" : "&"}${encodeURIComponent(key)}=${encodeURIComponent(value)}`;
  return url.href;
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function hintFor(status: number): string {
  return status >= 300 && status < 400 ? "; redirects are not followed" : "";
}

/** Null when there is nothing to keep. */
function beginningOf(text: string): string | null {
  return oneLine(text, ANSWER_LENGTH_KEPT) || null;
}
