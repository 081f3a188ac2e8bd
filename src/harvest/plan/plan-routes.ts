/** The API of plans, schedules and cursors, under `/api/v1/harvest`. */
import { actionPath } from "../../kernel/http/action-path.ts";
import { DryRunQuery, errors, NoBody } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import { UUID } from "../../kernel/ids.ts";
import { harvestError } from "../catalogue.ts";
import type { Gaps } from "./gaps.ts";
import { PlanBody } from "./plan-body.ts";
import type { Planner } from "./planner.ts";
import type { Reads } from "./reads.ts";
import * as replies from "./replies.ts";
import type { Schedules } from "./schedules.ts";
import * as schemas from "./schemas.ts";

const read = { scope: "harvest:read" } as const;
const write = { scope: "harvest:write" } as const;
const control = { scope: "harvest:control", bodyOptional: true } as const;
const tags = ["harvest"];
/** Ids of schedules are integers. */
const SCHEDULE_ID = /^\d{1,9}$/;

export interface PlanRoutesDeps {
  planner: Pick<Planner, "create" | "preview" | "cancel">;
  schedules: Pick<Schedules, "list" | "setPaused">;
  gaps: Gaps;
  reads: Reads;
}

export function planRoutes(http: Http, { planner, schedules, gaps, reads }: PlanRoutesDeps): void {
  http.post(
    "/plans",
    {
      config: write,
      schema: {
        tags,
        summary: "Plan the harvest of a window; with `dryRun`, only show its slices",
        querystring: DryRunQuery,
        body: PlanBody,
        response: { 200: schemas.PlanMadeReply, 201: schemas.PlanMadeReply, ...errors(400, 404, 409) },
      },
    },
    async (request, reply) => {
      if (request.query.dryRun) return replies.draftReply(await planner.preview(request.body));
      return reply.code(201).send(replies.madeReply(await planner.create(request.body, actorOf(request))));
    },
  );

  http.get(
    "/plans",
    {
      config: read,
      schema: {
        tags,
        summary: "List plans, the newest first",
        querystring: schemas.PlansQuery,
        response: { 200: schemas.PlansReply, ...errors(400) },
      },
    },
    async ({ query: { limit, source, endpoint, operation, status, after } }) => {
      const rows = await reads.plans({ source, endpoint, operation, status, after }, limit);
      return { items: rows.map(replies.planReply), next: behind(rows, limit, ({ plan_id }) => plan_id) };
    },
  );

  http.get(
    "/plans/:planId",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a plan: its state, its slices by state, and whether all that the source announced has come",
        params: schemas.PlanParams,
        response: { 200: schemas.PlanReply, ...errors(400, 404) },
      },
    },
    async ({ params }) => replies.planDetailReply(await reads.plan(params.planId)),
  );

  http.post(
    actionPath("/plans/:planId", "cancel"),
    {
      config: control,
      schema: {
        tags,
        summary: "Cancel a plan with its open slices and tasks; what is committed stays",
        params: schemas.PlanParams,
        body: NoBody,
        response: { 200: schemas.PlanReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { planId } = request.params;
      if (!UUID.test(planId)) throw harvestError("PLAN_NOT_FOUND", { id: planId });
      await planner.cancel(planId, actorOf(request));
      return replies.planDetailReply(await reads.plan(planId));
    },
  );

  http.get(
    "/plans/:planId/slices",
    {
      config: read,
      schema: {
        tags,
        summary: "List the slices of a plan in the order of their numbers",
        params: schemas.PlanParams,
        querystring: schemas.SlicesQuery,
        response: { 200: schemas.SlicesReply, ...errors(400, 404) },
      },
    },
    async ({ params, query: { limit, status, after } }) => {
      const rows = await reads.slices(params.planId, { status, after }, limit);
      return { items: rows.map(replies.sliceReply), next: behind(rows, limit, ({ slice_no }) => slice_no) };
    },
  );

  http.get(
    "/plans/:planId/slices/:sliceId",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a slice with its tasks and their runs, the newest first",
        params: schemas.SliceParams,
        response: { 200: schemas.SliceDetailReply, ...errors(400, 404) },
      },
    },
    async ({ params }) => replies.sliceDetailReply(await reads.slice(params)),
  );

  http.post(
    actionPath("/plans/:planId/slices/:sliceId", "accept"),
    {
      config: { scope: "harvest:control" },
      schema: {
        tags,
        summary:
          "Accept the gap of a slice that is FAILED or INCOMPLETE, or was cancelled without its plan: the watermark passes it",
        params: schemas.SliceParams,
        body: schemas.AcceptBody,
        response: { 200: schemas.SliceReply, ...errors(400, 404, 409) },
      },
    },
    async (request) =>
      replies.sliceReply(await gaps.accept(request.params, request.body.reason.trim(), actorOf(request))),
  );

  http.get(
    "/plans/:planId/tasks",
    {
      config: read,
      schema: {
        tags,
        summary: "List the tasks of a plan, the newest first",
        params: schemas.PlanParams,
        querystring: schemas.PlanTasksQuery,
        response: { 200: schemas.TasksReply, ...errors(400, 404) },
      },
    },
    async ({ params, query: { limit, status, after } }) => {
      const rows = await reads.planTasks(params.planId, { status, after }, limit);
      return { items: rows.map(replies.taskReply), next: behind(rows, limit, ({ task_id }) => task_id) };
    },
  );

  http.get(
    "/plans/:planId/runs",
    {
      config: read,
      schema: {
        tags,
        summary: "List the runs of a plan for its time line, those of the newest tasks first",
        params: schemas.PlanParams,
        querystring: schemas.PlanRunsQuery,
        response: { 200: schemas.PlanRunsReply, ...errors(400, 404) },
      },
    },
    async ({ params, query: { limit, after } }) => {
      const rows = await reads.planRuns(params.planId, after, limit);
      const next = behind(rows, limit, ({ task_id, attempt_no }) => `${task_id}.${attempt_no}`);
      return { items: rows.map(replies.planRunReply), next };
    },
  );

  http.get(
    "/tasks",
    {
      config: read,
      schema: {
        tags,
        summary: "List tasks, the newest first",
        querystring: schemas.TasksQuery,
        response: { 200: schemas.TasksReply, ...errors(400) },
      },
    },
    async ({ query: { limit, source, endpoint, operation, status, after } }) => {
      const rows = await reads.tasks({ source, endpoint, operation, status, after }, limit);
      return { items: rows.map(replies.taskReply), next: behind(rows, limit, ({ task_id }) => task_id) };
    },
  );

  http.get(
    "/tasks/:taskId/runs",
    {
      config: read,
      schema: {
        tags,
        summary: "List the attempts to execute a task, the newest first",
        params: schemas.TaskParams,
        querystring: schemas.RunsQuery,
        response: { 200: schemas.RunsReply, ...errors(400, 404) },
      },
    },
    async ({ params, query: { limit, after } }) => {
      const rows = await reads.runs(params.taskId, after, limit);
      return { items: rows.map(replies.runReply), next: behind(rows, limit, ({ attempt_no }) => attempt_no) };
    },
  );

  http.get(
    "/runs/:runId/batches",
    {
      config: read,
      schema: {
        tags,
        summary: "List the pages that a run committed",
        params: schemas.RunParams,
        querystring: schemas.BatchesQuery,
        response: { 200: schemas.BatchesReply, ...errors(400, 404) },
      },
    },
    async ({ params, query: { limit, after } }) => {
      const rows = await reads.batches(params.runId, after, limit);
      const next = behind(rows, limit, ({ generation, batch_no }) => `${generation}.${batch_no}`);
      return { items: rows.map(replies.batchReply), next };
    },
  );

  scheduleRoutes(http, schedules);
  cursorRoutes(http, reads);
}

function scheduleRoutes(http: Http, schedules: PlanRoutesDeps["schedules"]): void {
  http.get(
    "/schedules",
    {
      config: read,
      schema: {
        tags,
        summary: "List the schedules of sources, and what their last fire led to",
        querystring: schemas.SchedulesQuery,
        response: { 200: schemas.SchedulesReply, ...errors(400) },
      },
    },
    async ({ query: { source } }) => ({ items: (await schedules.list({ source })).map(replies.listedScheduleReply) }),
  );

  for (const paused of [true, false]) {
    http.post(
      actionPath("/schedules/:scheduleId", paused ? "pause" : "resume"),
      {
        config: control,
        schema: {
          tags,
          summary: paused ? "Pause a schedule" : "Resume a schedule; times that passed during the pause make no plan",
          params: schemas.ScheduleParams,
          body: NoBody,
          response: { 200: schemas.ScheduleReply, ...errors(400, 404) },
        },
      },
      async (request) => {
        const { scheduleId } = request.params;
        if (!SCHEDULE_ID.test(scheduleId)) throw harvestError("HARVEST_SCHEDULE_NOT_FOUND", { id: scheduleId });
        return replies.scheduleReply(await schedules.setPaused(Number(scheduleId), paused, actorOf(request)));
      },
    );
  }
}

function cursorRoutes(http: Http, reads: Reads): void {
  http.get(
    "/cursors",
    {
      config: read,
      schema: {
        tags,
        summary: "Show how far sources are harvested without a gap",
        querystring: schemas.CursorsQuery,
        response: { 200: schemas.CursorsReply, ...errors(400) },
      },
    },
    async ({ query: { source, operation } }) => ({
      items: (await reads.cursors({ source, operation })).map(replies.cursorReply),
    }),
  );

  http.get(
    "/cursors/:source/:namespace/events",
    {
      config: read,
      schema: {
        tags,
        summary: "List the advances of a cursor, the newest first",
        params: schemas.CursorParams,
        querystring: schemas.CursorEventsQuery,
        response: { 200: schemas.CursorEventsReply, ...errors(400) },
      },
    },
    async ({ params: { source, namespace }, query: { operation, limit } }) => ({
      items: (await reads.cursorEvents({ source, namespace, operation }, limit)).map(replies.cursorEventReply),
    }),
  );
}

/** The `next` of a full page: its last item. */
function behind<Row, Next>(rows: readonly Row[], limit: number, nextOf: (row: Row) => Next): Next | null {
  const last = rows.at(-1);
  return last && rows.length === limit ? nextOf(last) : null;
}
