/** The API that controls harvests, under `/api/v1/harvest`: pauses, the end of single slices, why one does not finish, and the connection check. */
import type { Db } from "../../kernel/data/db.ts";
import { actionPath } from "../../kernel/http/action-path.ts";
import { DryRunQuery, errors, NoBody } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import type { Reads } from "../plan/reads.ts";
import { sliceReply } from "../plan/replies.ts";
import { SliceParams, SliceReply, TaskParams } from "../plan/schemas.ts";
import { SourceParams } from "../registry-schemas.ts";
import type { ConnectionCheck } from "./check.ts";
import * as schemas from "./control-schemas.ts";
import type { Pauses } from "./pauses.ts";
import type { Rewinds } from "./rewind.ts";
import type { SliceCancel } from "./slice-cancel.ts";
import { whySlice } from "./why.ts";

const read = { scope: "harvest:read" } as const;
const control = { scope: "harvest:control", bodyOptional: true } as const;
const tags = ["harvest"];
const VERDICTS = ["fail", "warn", "ok"] as const;

export interface ControlRoutesDeps {
  db: Db;
  reads: Pick<Reads, "slice">;
  pauses: Pick<Pauses, "pause" | "resume" | "list">;
  sliceCancel: SliceCancel;
  rewinds: Rewinds;
  connectionCheck: ConnectionCheck;
}

export function controlRoutes(http: Http, deps: ControlRoutesDeps): void {
  const { db, reads, pauses, sliceCancel, connectionCheck } = deps;
  cursorRoutes(http, deps);

  http.get(
    "/pauses",
    {
      config: read,
      schema: {
        tags,
        summary: "List what is paused: sources, endpoints, operations",
        querystring: schemas.PausesQuery,
        response: { 200: schemas.PausesReply, ...errors(400) },
      },
    },
    async ({ query: { source } }) => pausesReply(await pauses.list(source)),
  );

  http.post(
    actionPath("/sources/:source", "pause"),
    {
      config: control,
      schema: {
        tags,
        summary: "Pause a source, an endpoint or an operation: no task starts, and schedules fire when it is resumed",
        params: SourceParams,
        body: schemas.PauseBody,
        response: { 200: schemas.PausesReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { endpoint = null, operation = null, reason = "" } = request.body ?? {};
      const scope = { source: request.params.source, endpoint, operation };
      return pausesReply(await pauses.pause(scope, reason.trim() || null, actorOf(request)));
    },
  );

  http.post(
    actionPath("/sources/:source", "resume"),
    {
      config: control,
      schema: {
        tags,
        summary: "Resume what was paused; answers it, and the pauses of the source that still hold",
        params: SourceParams,
        body: schemas.ResumeBody,
        response: { 200: schemas.ResumeReply, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { endpoint = null, operation = null } = request.body ?? {};
      const scope = { source: request.params.source, endpoint, operation };
      const { resumed, left } = await pauses.resume(scope, actorOf(request));
      return { resumed: resumed ? pauseReply(resumed) : null, ...pausesReply(left) };
    },
  );

  http.post(
    actionPath("/sources/:source", "check"),
    {
      config: control,
      schema: {
        tags,
        summary: "Check the connection to a source with one small page; nothing is stored",
        params: SourceParams,
        body: schemas.CheckBody,
        response: { 200: schemas.CheckReply, ...errors(400, 404) },
      },
    },
    async ({ params: { source }, body }) => {
      const checked = await connectionCheck.run(source, body ?? {});
      const verdict = VERDICTS.find((one) => checked.lines.some((line) => line.verdict === one)) ?? "ok";
      return { ...checked, verdict };
    },
  );

  http.post(
    actionPath("/plans/:planId/slices/:sliceId", "cancel"),
    {
      config: control,
      schema: {
        tags,
        summary: "Cancel a slice with its task; the rest of the plan goes on, and ends FAILED",
        params: SliceParams,
        body: NoBody,
        response: { 200: SliceReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => sliceReply(await sliceCancel.slice(request.params, actorOf(request))),
  );

  http.post(
    actionPath("/tasks/:taskId", "cancel"),
    {
      config: control,
      schema: {
        tags,
        summary: "Cancel a task with its slice; the rest of the plan goes on, and ends FAILED",
        params: TaskParams,
        body: NoBody,
        response: { 200: SliceReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => sliceReply(await sliceCancel.task(request.params.taskId, actorOf(request))),
  );

  http.get(
    "/plans/:planId/slices/:sliceId/why",
    {
      config: read,
      schema: {
        tags,
        summary: "Say why a slice does not finish",
        params: SliceParams,
        response: { 200: schemas.WhyReply, ...errors(400, 404) },
      },
    },
    async ({ params }) => {
      const { slice, causes } = await whySlice(db, params.planId, await reads.slice(params));
      return { sliceId: Number(slice.slice_id), status: slice.status_code, causes };
    },
  );
}

function cursorRoutes(http: Http, { rewinds }: Pick<ControlRoutesDeps, "rewinds">): void {
  http.post(
    actionPath("/cursors/:source/:namespace", "rewind"),
    {
      config: { scope: "harvest:control" },
      schema: {
        tags,
        summary:
          "Send a cursor back, so that what is behind that time is harvested once more; with `dryRun`, only count it",
        params: schemas.CursorParams,
        querystring: DryRunQuery,
        body: schemas.RewindBody,
        response: { 200: schemas.RewindReply, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { params, query, body } = request;
      const { to, operation, reason } = body;
      const rewound = await rewinds.rewind({ ...params, operation }, to, reason.trim(), actorOf(request), query);
      return { ...rewound, operation };
    },
  );

  http.get(
    "/cursors/:source/:namespace/timeline",
    {
      config: read,
      schema: {
        tags,
        summary: "Show the history of a cursor: advances, rewinds and gaps, the newest first",
        params: schemas.CursorParams,
        querystring: schemas.TimelineQuery,
        response: { 200: schemas.TimelineReply, ...errors(400) },
      },
    },
    async ({ params, query: { operation, limit } }) => {
      const rows = await rewinds.timeline({ ...params, operation }, limit);
      return {
        items: rows.map(({ plan_id: planId, slice_id, ...row }) => ({
          ...row,
          planId,
          sliceId: slice_id === null ? null : Number(slice_id),
        })),
      };
    },
  );
}

type PauseRow = Awaited<ReturnType<Pauses["list"]>>[number];

function pausesReply(rows: readonly PauseRow[]) {
  return { items: rows.map(pauseReply) };
}

function pauseReply(row: PauseRow) {
  return {
    source: row.provenance_code,
    endpoint: row.endpoint_name,
    operation: row.operation_code,
    at: row.paused_at,
    by: row.paused_by,
    reason: row.reason,
    automatic: row.is_automatic,
  };
}
