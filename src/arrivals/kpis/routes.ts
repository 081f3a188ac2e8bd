/** The API of indicators and their values, the logs of runs and arrivals, and readiness. */
import type { Db } from "../../kernel/data/db.ts";
import { storableJson } from "../../kernel/data/storable.ts";
import { invalid } from "../../kernel/errors.ts";
import { DryRunQuery, errors } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import { parseWithin } from "../../kernel/json/complexity.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import * as actions from "../action-schemas.ts";
import type { Arrivals } from "../arrivals.ts";
import { readCells } from "../models/cells.ts";
import { readiness } from "../models/readiness.ts";
import { explainTable } from "../models/table-why.ts";
import * as readinessSchemas from "../readiness-schemas.ts";
import { arrivalReply, kpiReply, taskReply, valueReply } from "../replies.ts";
import * as schemas from "../schemas.ts";
import type { Dimensions } from "./formula.ts";
import { readSeries } from "./series.ts";

export function kpiRoutes(http: Http, { db, arrivals }: { db: Db; arrivals: Arrivals }): void {
  const { indicators, models } = arrivals;
  const read = { scope: "kpi:read" } as const;
  const write = { scope: "kpi:write" } as const;
  const tags = ["indicators"];

  http.get(
    "/indicators",
    {
      config: read,
      schema: {
        tags,
        summary: "List indicators",
        querystring: schemas.KpisQuery,
        response: { 200: schemas.KpisReply, ...errors(400) },
      },
    },
    async ({ query: { q = null, type = null, page, size } }) => {
      const { items, total } = await indicators.list({ q, type, page, size });
      return { items: items.map(kpiReply), page, size, total };
    },
  );

  http.put(
    "/indicators/:kpiId",
    {
      config: write,
      schema: {
        tags,
        summary:
          "Define an indicator: EXTENDED is fed by a model, COMPUTED by a formula over others; with `dryRun`, only check it",
        params: schemas.KpiPutParams,
        querystring: DryRunQuery,
        body: schemas.IndicatorBody,
        response: { 200: schemas.KpiReply, 201: schemas.KpiReply, ...errors(400, 409) },
      },
    },
    async (request, reply) => {
      const { params, body, query } = request;
      const { kpi, created } = await indicators.put(params.kpiId, body, actorOf(request), query);
      return reply.code(created && !query.dryRun ? 201 : 200).send(kpiReply(kpi));
    },
  );

  http.get(
    "/indicators/:kpiId",
    {
      config: read,
      schema: {
        tags,
        summary: "Show an indicator",
        params: schemas.KpiParams,
        response: { 200: schemas.KpiReply, ...errors(400, 404) },
      },
    },
    async ({ params }) => kpiReply(await indicators.get(params.kpiId)),
  );

  http.delete(
    "/indicators/:kpiId",
    {
      config: write,
      schema: {
        tags,
        summary: "Delete an indicator that is not in use, with its values",
        params: schemas.KpiParams,
        querystring: DryRunQuery,
        response: { 200: schemas.KpiReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => kpiReply(await indicators.remove(request.params.kpiId, actorOf(request), request.query)),
  );

  http.get(
    "/data",
    {
      config: read,
      schema: {
        tags,
        summary: "Values of indicators, by indicator, opTime and dimensions",
        querystring: schemas.DataQuery,
        response: { 200: schemas.DataReply, ...errors(400, 404) },
      },
    },
    async ({ query }) => {
      const { kpiId = null, opTime = null, from = null, to = null, order = "asc", page, size } = query;
      const dimensions = query.dimensions === undefined ? null : dimensionsOf(query.dimensions);
      const { items, total } = await indicators.values({ kpiId, opTime, from, to, dimensions, order, page, size });
      return { items: items.map(valueReply), page, size, total };
    },
  );

  http.get(
    "/task-logs",
    {
      config: read,
      schema: {
        tags: ["models"],
        summary: "Runs of models, the newest first",
        querystring: schemas.TasksQuery,
        response: { 200: schemas.TasksReply, ...errors(400, 404) },
      },
    },
    async ({ query: { modelId = null, opTime = null, status = null, page, size } }) => {
      const { items, total } = await models.runs({ modelId, opTime, status, page, size });
      return { items: items.map(taskReply), page, size, total };
    },
  );

  http.get(
    "/arrivals",
    {
      config: read,
      schema: {
        tags: ["arrivals"],
        summary: "Tables that have arrived, the newest first",
        querystring: schemas.ArrivalsQuery,
        response: { 200: schemas.ArrivalsReply, ...errors(400) },
      },
    },
    async ({ query: { table = null, opTime = null, page, size } }) => {
      const { items, total } = await arrivals.list({ table, opTime, page, size });
      return { items: items.map(arrivalReply), page, size, total };
    },
  );

  http.delete(
    "/arrivals",
    {
      config: write,
      schema: {
        tags: ["arrivals"],
        summary: "Take an arrival back: the table counts as missing until it arrives again; values that used it stay",
        querystring: actions.RetractQuery,
        response: { 200: actions.RetractReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { table, opTime, dryRun } = request.query;
      return { table, opTime, dryRun, ...(await arrivals.retract({ table, opTime }, actorOf(request), { dryRun })) };
    },
  );

  http.get(
    "/readiness",
    {
      config: read,
      schema: {
        tags: ["arrivals"],
        summary: "Which tables have arrived and the states of the models, over a range of opTimes",
        querystring: schemas.RangeQuery,
        response: { 200: schemas.ReadinessReply, ...errors(400) },
      },
    },
    async ({ query: { from, to } }) => readiness(db, from, to),
  );

  http.get(
    "/readiness/cells",
    {
      config: read,
      schema: {
        tags: ["arrivals"],
        summary: "Readiness as a page of tables or models by opTimes, with a code for each cell",
        querystring: readinessSchemas.CellsQuery,
        response: { 200: readinessSchemas.CellsReply, ...errors(400) },
      },
    },
    async ({ query }) => readCells(db, systemClock, query),
  );

  http.get(
    "/arrivals/why",
    {
      config: read,
      schema: {
        tags: ["arrivals"],
        summary:
          "Whether a table has arrived for an opTime, by whom, when it usually does, and which models wait for it",
        querystring: readinessSchemas.TableWhyQuery,
        response: { 200: readinessSchemas.TableWhyReply, ...errors(400) },
      },
    },
    async ({ query: { table, opTime } }) => {
      const { arrival, ...rest } = await explainTable(db, arrivals.tableName(table), opTime);
      return { ...rest, arrival: arrival && arrivalReply(arrival) };
    },
  );

  http.get(
    "/series",
    {
      config: read,
      schema: {
        tags,
        summary: "Values of an indicator, or of all that a model feeds, over a range of opTimes, as lines of a plot",
        querystring: readinessSchemas.SeriesQuery,
        response: { 200: readinessSchemas.SeriesReply, ...errors(400, 404) },
      },
    },
    async ({ query }) => {
      if ((query.kpiId === undefined) === (query.modelId === undefined)) {
        const reason = "A series needs either `kpiId` or `modelId`";
        throw invalid(reason);
      }
      return readSeries(db, query);
    },
  );
}

function dimensionsOf(text: string): Dimensions {
  try {
    const storable = storableJson(parseWithin(text)); // The stored dimensions were normalised the same way.
    if ("copy" in storable && isRecord(storable.copy)) return storable.copy as Dimensions;
  } catch {
    // Answered below, like any other text that is not an object.
  }
  const reason = 'The parameter `dimensions` must be a JSON object like {"region":"EU"}';
  throw invalid(reason);
}
