/** The API of schedules and pools. */
import { actionPath } from "../../kernel/http/action-path.ts";
import { DryRunQuery, errors, NoBody } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import type { Chains } from "../chains.ts";
import { chainIdOf, scheduleIdOf } from "../ids.ts";
import { ChainParams } from "../schemas.ts";
import type { ScheduleRow } from "../store/schedules.ts";
import type { ScheduleKey } from "./schedules.ts";
import * as schemas from "./schemas.ts";

export function scheduleRoutes(http: Http, { chains: { schedules } }: { chains: Chains }): void {
  const read = { scope: "chain:read" } as const;
  const write = { scope: "chain:write" } as const;
  const tags = ["chains"];

  http.get(
    "/chains/:chainId/schedules",
    {
      config: read,
      schema: {
        tags,
        summary: "List the schedules of a chain",
        params: ChainParams,
        response: { 200: schemas.SchedulesReply, ...errors(400) },
      },
    },
    async ({ params }) => ({ items: (await schedules.list(chainIdOf(params))).map(scheduleReply) }),
  );

  http.post(
    "/chains/:chainId/schedules",
    {
      config: write,
      schema: {
        tags,
        summary: "Start a chain on a schedule: cron with a time zone",
        params: ChainParams,
        querystring: DryRunQuery,
        body: schemas.ScheduleBody,
        response: { 200: schemas.ScheduleReply, ...errors(400) },
      },
    },
    async (request) => {
      const { params, query, body } = request;
      return scheduleReply(await schedules.create(chainIdOf(params), inputOf(body), actorOf(request), query));
    },
  );

  http.get(
    "/chains/:chainId/schedules/:scheduleId",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a schedule",
        params: schemas.ScheduleParams,
        response: { 200: schemas.ScheduleReply, ...errors(400) },
      },
    },
    async ({ params }) => scheduleReply(await schedules.get(chainIdOf(params), scheduleIdOf(params))),
  );

  http.put(
    "/chains/:chainId/schedules/:scheduleId",
    {
      config: write,
      schema: {
        tags,
        summary: "Change a schedule; absent fields stay as they are",
        params: schemas.ScheduleParams,
        querystring: DryRunQuery,
        body: schemas.ScheduleChangeBody,
        response: { 200: schemas.ScheduleReply, ...errors(400) },
      },
    },
    async (request) => {
      const { params, query, body } = request;
      return scheduleReply(await schedules.update(keyOf(params), inputOf(body), actorOf(request), query));
    },
  );

  http.delete(
    "/chains/:chainId/schedules/:scheduleId",
    {
      config: write,
      schema: {
        tags,
        summary: "Delete a schedule; its runs stay",
        params: schemas.ScheduleParams,
        querystring: DryRunQuery,
        response: { 200: schemas.ScheduleReply, ...errors(400) },
      },
    },
    async (request) => {
      const key = keyOf(request.params);
      const row = await schedules.get(key.chainId, key.scheduleId);
      await schedules.remove(key, actorOf(request), request.query);
      return scheduleReply(row);
    },
  );

  for (const paused of [true, false]) {
    http.post(
      actionPath("/chains/:chainId/schedules/:scheduleId", paused ? "pause" : "unpause"),
      {
        config: { ...write, bodyOptional: true },
        schema: {
          tags,
          summary: paused ? "Pause a schedule" : "Unpause a schedule; times that passed during the pause start no run",
          params: schemas.ScheduleParams,
          querystring: DryRunQuery,
          body: NoBody,
          response: { 200: schemas.ScheduleReply, ...errors(400) },
        },
      },
      async (request) => {
        const { params, query } = request;
        return scheduleReply(await schedules.setPaused(keyOf(params), paused, actorOf(request), query));
      },
    );
  }
}

export function poolRoutes(http: Http, { pools }: Pick<Chains, "pools">): void {
  const tags = ["chains"];

  http.get(
    "/pools",
    {
      config: { scope: "chain:read" },
      schema: { tags, summary: "List pools and how full they are", response: { 200: schemas.PoolsReply } },
    },
    async () => ({ items: await pools.list() }),
  );

  http.put(
    "/pools/:name",
    {
      config: { scope: "chain:write" },
      schema: {
        tags,
        summary: "Create a pool or change its size: how many of its nodes may run at a time, over all processes",
        params: schemas.PoolParams,
        querystring: DryRunQuery,
        body: schemas.PoolBody,
        response: { 200: schemas.PoolReply, ...errors(400) },
      },
    },
    async (request) => {
      const { name } = request.params;
      const { size } = request.body;
      await pools.set(name, size, actorOf(request), request.query);
      return { name, size };
    },
  );

  http.delete(
    "/pools/:name",
    {
      config: { scope: "chain:write" },
      schema: {
        tags,
        summary: "Delete a pool that no chain and no node uses",
        params: schemas.PoolParams,
        querystring: DryRunQuery,
        response: { 200: schemas.PoolReply, ...errors(400, 409) },
      },
    },
    async (request) => {
      const { name } = request.params;
      await pools.remove(name, actorOf(request), request.query);
      return { name, size: 0 };
    },
  );
}

function keyOf(params: { chainId: string; scheduleId: string }): ScheduleKey {
  return { chainId: chainIdOf(params), scheduleId: scheduleIdOf(params) };
}

function inputOf<Sent extends { params?: object }>({ params, ...body }: Sent) {
  return { ...body, ...(params === undefined ? {} : { params: params as Record<string, unknown> }) };
}

function scheduleReply(row: ScheduleRow) {
  return {
    scheduleId: row.schedule_id,
    chainId: row.chain_id,
    name: row.name,
    cron: row.cron,
    timeZone: row.time_zone,
    missed: row.missed,
    opTime: row.op_time,
    params: row.params,
    priority: row.priority,
    paused: row.paused,
    nextAt: row.paused ? null : row.next_at,
    lastAt: row.last_at,
    lastRunId: row.last_run_id,
    problem: row.problem,
    retryAt: row.retry_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
