/** The API of subscriptions and deliveries, under `/api/v1/kpi`. */

import { actionPath } from "../kernel/http/action-path.ts";
import { DryRunQuery, errors, NoBody } from "../kernel/http/schemas.ts";
import { actorOf, type Http } from "../kernel/http/server.ts";
import { UUID } from "../kernel/ids.ts";
import { webhooksError } from "./catalogue.ts";
import { attemptReply, deliveryReply, requestReply, savedReply, subscriptionReply } from "./replies.ts";
import * as schemas from "./schemas.ts";
import type { SubscriptionInput } from "./subscriptions.ts";
import type { Webhooks } from "./webhooks.ts";

const read = { scope: "kpi:read" } as const;
const write = { scope: "kpi:write" } as const;
const action = { ...write, bodyOptional: true } as const;
const tags = ["webhooks"];

export function webhookRoutes(http: Http, { webhooks }: { webhooks: Webhooks }): void {
  subscriptionRoutes(http, webhooks);
  deliveryRoutes(http, webhooks);
}

function subscriptionRoutes(http: Http, { subscriptions }: Webhooks): void {
  http.post(
    "/kpi/subscriptions",
    {
      config: write,
      schema: {
        tags,
        summary: "Subscribe a callback to a KPI; with `dryRun`, only check it",
        querystring: DryRunQuery,
        body: schemas.CreateBody,
        description:
          "A KPI, callback and team have one subscription: the same one posted again is answered with 200, one with other fields is a 409.",
        response: { 200: schemas.SavedReply, 201: schemas.SavedReply, ...errors(400, 409) },
      },
    },
    async (request, reply) => {
      const { body, query } = request;
      const { status, ...fields } = body;
      const input = { ...fields, ...(status === undefined ? {} : { status: statusOf(status) }) };
      const saved = await subscriptions.create(input, actorOf(request), query);
      return reply.code(saved.created && !query.dryRun ? 201 : 200).send(savedReply(saved));
    },
  );

  http.get(
    "/kpi/subscriptions",
    {
      config: read,
      schema: {
        tags,
        summary: "List and search subscriptions",
        querystring: schemas.SubscriptionsQuery,
        response: { 200: schemas.SubscriptionsReply, ...errors(400) },
      },
    },
    async ({ query: { page, size, ...filter } }) => {
      const { items, total } = await subscriptions.list(filter, { size, offset: (page - 1) * size });
      return { items: items.map(subscriptionReply), page, size, total };
    },
  );

  http.get(
    "/kpi/subscriptions/:id",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a subscription",
        params: schemas.IdParams,
        response: { 200: schemas.SubscriptionReply, ...errors(400, 404) },
      },
    },
    async ({ params }) => subscriptionReply(await subscriptions.get(subscriptionIdOf(params))),
  );

  http.patch(
    "/kpi/subscriptions/:id",
    {
      config: write,
      schema: {
        tags,
        summary: "Change a subscription; absent fields stay as they are",
        params: schemas.IdParams,
        querystring: DryRunQuery,
        body: schemas.ChangeBody,
        response: { 200: schemas.SavedReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { params, query, body } = request;
      const { status, ...fields } = body;
      const input: SubscriptionInput = { ...fields, ...(status === undefined ? {} : { status: statusOf(status) }) };
      return savedReply(await subscriptions.update(subscriptionIdOf(params), input, actorOf(request), query));
    },
  );

  http.delete(
    "/kpi/subscriptions/:id",
    {
      config: write,
      schema: {
        tags,
        summary: "Delete a subscription; pending deliveries for it alone are cancelled",
        params: schemas.IdParams,
        querystring: DryRunQuery,
        response: { 200: schemas.SubscriptionReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { params, query } = request;
      return subscriptionReply(await subscriptions.remove(subscriptionIdOf(params), actorOf(request), query));
    },
  );

  http.post(
    actionPath("/kpi/subscriptions/:id", "test"),
    {
      config: action,
      schema: {
        tags,
        summary: "Send a TEST event now, and show the answer",
        params: schemas.IdParams,
        body: NoBody,
        response: { 200: schemas.TestReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const attempt = await subscriptions.test(subscriptionIdOf(request.params), actorOf(request));
      return { delivered: attempt.error === null, ...attemptReply(attempt) };
    },
  );

  http.post(
    actionPath("/kpi/subscriptions/:id", "rotate"),
    {
      config: action,
      schema: {
        tags,
        summary: "Give the callback and team of a subscription a new signing key",
        params: schemas.IdParams,
        body: NoBody,
        response: { 200: schemas.RotateReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const id = subscriptionIdOf(request.params);
      const { signingKey, previousUntil } = await subscriptions.rotate(id, actorOf(request));
      return { id, signingKey, previousValidUntil: previousUntil };
    },
  );
}

function deliveryRoutes(http: Http, { deliveries }: Webhooks): void {
  http.get(
    "/kpi/deliveries",
    {
      config: read,
      schema: {
        tags,
        summary: "List deliveries, newest first",
        querystring: schemas.DeliveriesQuery,
        response: { 200: schemas.DeliveriesReply, ...errors(400) },
      },
    },
    async ({ query: { limit, since, ...filter } }) => {
      const rows = await deliveries.list(
        { ...filter, ...(since === undefined ? {} : { since: timeOf(since) }) },
        limit + 1,
      );
      const items = rows.slice(0, limit);
      return { items: items.map(deliveryReply), next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
    },
  );

  http.get(
    "/kpi/deliveries/:id",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a delivery with its payload and its attempts",
        params: schemas.IdParams,
        response: { 200: schemas.DeliveryDetail, ...errors(400, 404) },
      },
    },
    async ({ params }) => {
      const delivery = await deliveries.get(deliveryIdOf(params));
      const { payload, attempts, ...row } = delivery;
      const log = attempts.map(({ attempt, at, duration_ms, status_code, ...same }) => ({
        attempt,
        at,
        durationMs: duration_ms,
        statusCode: status_code,
        ...same,
      }));
      return { ...deliveryReply(row), payload, request: requestReply(delivery), log };
    },
  );

  http.post(
    actionPath("/kpi/deliveries/:id", "redeliver"),
    {
      config: action,
      schema: {
        tags,
        summary: "Send a delivery again, under the same id",
        params: schemas.IdParams,
        querystring: DryRunQuery,
        body: NoBody,
        response: { 200: schemas.DeliveryReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { params, query } = request;
      return deliveryReply(await deliveries.redeliver(deliveryIdOf(params), actorOf(request), query));
    },
  );

  http.post(
    "/kpi/deliveries::recover",
    {
      config: write,
      schema: {
        tags,
        summary:
          "Send again all deliveries that failed, or ended otherwise, since a time; with `dryRun`, only count them",
        querystring: DryRunQuery,
        body: schemas.RecoverBody,
        response: { 200: schemas.RecoverReply, ...errors(400) },
      },
    },
    async (request) => {
      const { since, callbackUrl, ...others } = request.body;
      const which = { ...others, since: timeOf(since), ...(callbackUrl ? { callbackUrl } : {}) };
      return { recovered: await deliveries.recover(which, actorOf(request), request.query) };
    },
  );
}

function statusOf(sent: "0" | "1" | 0 | 1): "0" | "1" {
  return sent === 1 || sent === "1" ? "1" : "0";
}

/** A `+` that was not encoded arrives as a space in a query string. */
function timeOf(text: string): string {
  return text.replace(" ", "+");
}

function subscriptionIdOf({ id }: { id: string }): number {
  if (!/^[1-9]\d{0,9}$/.test(id) || Number(id) >= 2 ** 31) throw webhooksError("SUBSCRIPTION_NOT_FOUND", { id });
  return Number(id);
}

function deliveryIdOf({ id }: { id: string }): string {
  if (!UUID.test(id)) throw webhooksError("DELIVERY_NOT_FOUND", { id });
  return id.toLowerCase();
}
