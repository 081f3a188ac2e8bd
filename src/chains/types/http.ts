/** A node that makes one HTTP request and checks the response. Its artifact holds status, headers and body. */

import { type Static, Type } from "typebox";
import { compileExpression, type Expression, ExpressionError } from "../../kernel/expressions/cel.ts";
import type { Gates } from "../../kernel/gate/gates.ts";
import { signalOf } from "../../kernel/gate/signal.ts";
import { parseWithin } from "../../kernel/json/complexity.ts";
import { type Outbound, type OutboundAnswer, OutboundRefused, shownUrl } from "../../kernel/net/outbound.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { oneLine } from "../../kernel/text/sentences.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { FinalFailure, type NodeContext, type NodeType, nodeType } from "./node-type.ts";

const BODY_LIMIT_BYTES = 1_048_576;
const EXCERPT_LENGTH = 500;

/** A slot of a gate is held for longer than the request can take. */
const SLOT_SPARE_MS = 30_000;
const SHOWN_WAIT_MS = 100;
const REFUSED = {
  OVER_DEADLINE: "lets nothing more through within the time-out of the node",
  COOLDOWN: "is closed, because its service asked to be left alone",
  QUOTA: "has spent the quota of its service",
  SLOTS: "had no free slot within the time-out of the node",
} as const satisfies Record<string, string>;

/** The headers that later nodes may need; others are left out of the artifact. */
const KEPT_HEADERS = ["content-type", "etag", "last-modified", "link", "location", "retry-after", "x-request-id"];

/** Statuses below 500 that may succeed when retried. */
const TRANSIENT_STATUSES = [408, 425, 429];

const Status = Type.Union([
  Type.Integer({ minimum: 200, maximum: 599 }),
  Type.Enum(["2xx", "3xx", "4xx", "5xx"] as const),
]);
type Status = Static<typeof Status>;

const CfgSchema = Type.Object(
  {
    method: Type.Enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const, { default: "GET" }),
    url: Type.String({ minLength: 1, maxLength: 8_192 }),
    headers: Type.Record(Type.String(), Type.String(), { maxProperties: 100, default: {} }),
    body: Type.Optional(Type.Unknown({ description: "Text is sent as it is, anything else as JSON." })),
    expectStatus: Type.Union([Status, Type.Array(Status, { minItems: 1, maxItems: 100 })], {
      default: "2xx",
      description: "The expected status, or a list of them.",
    }),
    expectBody: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4_096,
        description: "A CEL expression over `status`, `headers` and `body` that must be true.",
      }),
    ),
    timeoutMs: Type.Integer({
      minimum: 1,
      maximum: DAY_MS,
      default: 60_000,
      description: "For the whole request and response.",
    }),
    gate: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: "A rate gate. The node waits for its permit, up to `timeoutMs`, before it sends the request.",
      }),
    ),
  },
  { additionalProperties: false },
);
type Cfg = Static<typeof CfgSchema>;

export interface HttpDeps {
  outbound: Outbound;
  gates: Pick<Gates, "take" | "feedback">;
  clock: Clock;
}

export function httpType(deps: HttpDeps): NodeType<typeof CfgSchema> {
  return nodeType({
    type: "http",
    readsParents: false,
    summary: "Makes an HTTP request and checks the status and the body of the response.",
    cfg: CfgSchema,
    async execute(ctx, cfg) {
      const call = `${cfg.method} ${shownUrl(cfg.url)}`;
      // Before the request is sent: an invalid expression must not cause an external effect.
      const condition = cfg.expectBody === undefined ? undefined : compileCondition(cfg.expectBody);
      ctx.log(call);
      const answer = await throughGate(deps, ctx, cfg, () => send(deps.outbound, ctx, cfg, call));
      const { status, headers } = answer;
      ctx.log(`${status}, ${answer.body.length} bytes${answer.truncated ? " and more" : ""}`);

      const text = new TextDecoder().decode(answer.body);
      const answered = `${call} answered ${status}`;
      checkStatus(status, [cfg.expectStatus].flat(), answered, text);
      if (answer.truncated) throw new FinalFailure(`${answered} with more than ${BODY_LIMIT_BYTES} bytes.`);
      const body = parseBody(headers["content-type"], text, ctx);
      if (condition) checkBody(condition, { status, headers, body }, answered, text);
      const kept = Object.entries(headers).filter(([name]) => KEPT_HEADERS.includes(name));
      return { artifact: { status, headers: Object.fromEntries(kept), body } };
    },
  });
}

/** Calls `request` when its gate lets it through, and tells the gate what the answer says about limits. */
async function throughGate(
  { gates, clock }: HttpDeps,
  ctx: NodeContext,
  { gate, timeoutMs }: Cfg,
  request: () => Promise<OutboundAnswer>,
): Promise<OutboundAnswer> {
  if (gate === undefined) return request();
  const wanted = { task: ctx.runId, gates: [{ key: gate }], slotTtlMs: timeoutMs + SLOT_SPARE_MS };
  const taken = await gates.take(wanted, { maxWaitMs: timeoutMs, signal: ctx.signal });
  if (taken.kind === "rejected") {
    const seconds = Math.ceil(taken.retryAfterMs / 1_000);
    throw new Error(`The gate \`${gate}\` ${REFUSED[taken.reason]}. Try again in ${seconds} s.`);
  }
  if (taken.waitedMs >= SHOWN_WAIT_MS) ctx.log(`waited ${Math.round(taken.waitedMs)} ms for the gate \`${gate}\``);
  try {
    const answer = await request();
    await gates.feedback(gate, signalOf(answer, clock.now())).catch((error: unknown) => {
      ctx.log(`the gate \`${gate}\` was not told of the answer: ${messageOf(error)}`, "warn");
    });
    return answer;
  } finally {
    await taken.release();
  }
}

async function send(outbound: Outbound, ctx: NodeContext, cfg: Cfg, call: string): Promise<OutboundAnswer> {
  const { method, url, body, timeoutMs } = cfg;
  const isJson = body !== undefined && typeof body !== "string";
  const given = Object.entries(cfg.headers).map(([name, value]) => [name.toLowerCase(), value]);
  try {
    return await outbound.request({
      method,
      url,
      headers: {
        "idempotency-key": ctx.key,
        ...(isJson ? { "content-type": "application/json" } : {}),
        ...Object.fromEntries(given),
      },
      ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : body }),
      timeoutMs,
      bodyLimitBytes: BODY_LIMIT_BYTES,
      signal: ctx.signal,
    });
  } catch (error) {
    if (ctx.signal.aborted) throw error;
    const sentence = `${call} failed: ${messageOf(error)}`;
    throw error instanceof OutboundRefused
      ? new FinalFailure(sentence, { cause: error })
      : new Error(sentence, { cause: error });
  }
}

function checkStatus(status: number, expected: readonly Status[], answered: string, text: string): void {
  if (expected.some((one) => one === status || one === `${Math.floor(status / 100)}xx`)) return;
  const hint = status >= 300 && status < 400 ? " (redirects are not followed)" : "";
  const sentence = `${answered}${hint}${excerptOf(text)}`;
  throw status >= 500 || TRANSIENT_STATUSES.includes(status) ? new Error(sentence) : new FinalFailure(sentence);
}

function parseBody(contentType = "", text: string, ctx: NodeContext): unknown {
  if (text === "") return null;
  if (!/[/+]json\s*(;|$)/i.test(contentType)) return text;
  try {
    return parseWithin(text);
  } catch {
    ctx.log(`the content type is ${contentType}, but the body is not JSON; it is kept as text`, "warn");
    return text;
  }
}

function compileCondition(source: string): Expression {
  try {
    return compileExpression(source, ["status", "headers", "body"]);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw new FinalFailure(`expectBody: ${error.message}`, { cause: error });
  }
}

/** Throws no FinalFailure: retrying until the body matches is how a node polls another system. */
function checkBody(condition: Expression, values: Record<string, unknown>, answered: string, text: string): void {
  let verdict: unknown;
  try {
    verdict = condition.evaluate(values);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw new Error(`${answered}, but expectBody ${error.message}`, { cause: error });
  }
  if (verdict !== true) throw new Error(`${answered}, but \`${condition.source}\` is not true${excerptOf(text)}`);
}

/** The start of a body as the end of a sentence. */
function excerptOf(text: string): string {
  const line = oneLine(text, EXCERPT_LENGTH);
  return line === "" ? "." : `: ${line}`;
}
