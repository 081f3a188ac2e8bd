/** The API of runs and their nodes under `/api/v1/runs`. */
import { ApiError, invalid, kernelError } from "../../kernel/errors.ts";
import { actionPath } from "../../kernel/http/action-path.ts";
import { parseJson } from "../../kernel/http/body.ts";
import { errors, NoBody } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import { oneLine } from "../../kernel/text/sentences.ts";
import type { Chains } from "../chains.ts";
import { isUuid, runIdOf } from "../ids.ts";
import * as schemas from "./schemas.ts";
import type { RunStreams } from "./stream.ts";
import { nodeReplies, nodeReply, runReply } from "./view.ts";

const PAGE_RUNS = 20;

export function runRoutes(http: Http, deps: { chains: Chains; streams: RunStreams }): void {
  const { streams } = deps;
  const { runs, reads } = deps.chains;
  const read = { scope: "run:read" } as const;
  const control = { scope: "run:control", bodyOptional: true } as const;
  const tags = ["runs"];

  http.get(
    "/runs",
    {
      config: read,
      schema: {
        tags,
        summary: "List and search runs, newest first",
        description: "`total` is counted up to 10,000. `params` larger than 8 KB are only shown with the run itself.",
        querystring: schemas.RunsQuery,
        response: { 200: schemas.RunsReply, ...errors(400) },
      },
    },
    async ({ query: { page, size: wanted, ids: list, ...others } }) => {
      const ids = list === undefined ? null : runIdsOf(list);
      const size = wanted ?? ids?.length ?? PAGE_RUNS;
      const { chainId, parentRunId, after } = others;
      // Text that is not an id matches nothing.
      if ([chainId, parentRunId, after].some((id) => id !== undefined && !isUuid(id)))
        return { items: [], page, size, total: 0, next: null };
      const offset = after === undefined ? (page - 1) * size : 0;
      const { items, total } = await reads.list({ ...filterOf(others), ids }, { size, offset });
      const next = items.length === size ? (items.at(-1)?.run_id ?? null) : null;
      return { items: items.map(runReply), page, size, total, next };
    },
  );

  http.get(
    "/runs/:runId",
    {
      config: read,
      schema: {
        tags,
        summary: "Show a run",
        params: schemas.RunParams,
        querystring: schemas.RunQuery,
        response: { 200: schemas.RunDetail, ...errors(400) },
      },
    },
    async ({ params, query }) => {
      const runId = runIdOf(params);
      const [row, dag] = await Promise.all([reads.get(runId), query.dag ? reads.dag(runId) : undefined]);
      const { counts, previous } = row;
      return { ...runReply(row), counts, previous, ...(dag && { dagJson: JSON.stringify(dag), dag }) };
    },
  );

  http.get(
    "/runs/:runId/nodes",
    {
      config: read,
      schema: {
        tags,
        summary: "Show all nodes of a run, in the order of its definition",
        description: "An artifact larger than 64 KB is only shown with the node itself.",
        params: schemas.RunParams,
        querystring: schemas.NodesQuery,
        response: { 200: schemas.NodesReply, ...errors(400) },
      },
    },
    async ({ params, query: { artifacts, since } }) => {
      const runId = runIdOf(params);
      const asked = { artifacts, since: since === undefined ? null : timeOf(since) };
      const [rows, dag] = await Promise.all([reads.nodes(runId, asked), reads.dag(runId)]);
      return rows.map(nodeReplies(dag));
    },
  );

  http.get(
    "/runs/:runId/nodes/:nodeId",
    {
      config: read,
      schema: {
        tags,
        summary: "Show one node of a run, with its artifact of any size",
        params: schemas.NodeParams,
        response: { 200: schemas.NodeReply, ...errors(400) },
      },
    },
    async ({ params }) => {
      const row = await reads.node(runIdOf(params), params.nodeId);
      return nodeReply(row, row.def);
    },
  );

  http.get(
    "/runs/:runId/nodes/:nodeId/attempts",
    {
      config: read,
      schema: {
        tags,
        summary: "Show the attempts of a node, oldest first",
        params: schemas.NodeParams,
        response: { 200: schemas.AttemptsReply, ...errors(400) },
      },
    },
    async ({ params }) => {
      const rows = await reads.attempts(runIdOf(params), params.nodeId);
      return rows.map(({ started_at, ended_at, ...row }) => ({
        ...row,
        startedAt: started_at,
        endedAt: ended_at,
      }));
    },
  );

  http.get(
    "/runs/:runId/nodes/:nodeId/logs",
    {
      config: read,
      schema: {
        tags,
        summary: "Read the log of a node",
        description: "`next` is the `after` for the following lines, even if there are none yet.",
        params: schemas.NodeParams,
        querystring: schemas.LogsQuery,
        response: { 200: schemas.LogsReply, ...errors(400) },
      },
    },
    async ({ params, query: { attempt, after = "0", limit } }) => {
      const rows = await reads.log(runIdOf(params), params.nodeId, { attempt: attempt ?? null, after, limit });
      const items = rows.map(({ id, at, attempt: of, level, line }) => ({ id, at, attempt: of, level, text: line }));
      return { items, next: items.at(-1)?.id ?? after };
    },
  );

  http.get(
    "/runs/:runId/events",
    {
      config: read,
      schema: {
        tags,
        summary: "What happened to a run, in order",
        params: schemas.RunParams,
        querystring: schemas.EventsQuery,
        response: { 200: schemas.EventsReply, ...errors(400) },
      },
    },
    async ({ params, query: { after = "0", limit } }) => {
      const offset = Number(after);
      const rows = await reads.events(runIdOf(params), { limit, offset });
      const items = rows.map(({ node_id, ...row }) => ({ ...row, nodeId: node_id }));
      return { items, next: rows.length === limit ? String(offset + limit) : null };
    },
  );

  http.get(
    "/runs/:runId/stream",
    {
      config: read,
      exposeHeadRoute: false, // The stream may never end.
      schema: {
        tags,
        summary: "Watch a run: server-sent events `run`, `nodes` (those that changed) and `end`",
        params: schemas.RunParams,
        response: { 200: schemas.StreamReply, ...errors(400) },
      },
    },
    async (request, reply) => {
      const runId = runIdOf(request.params);
      await reads.get(runId);
      await streams.send(runId, reply, request.accessEnds());
      return reply;
    },
  );

  http.post(
    actionPath("/runs/:runId", "stop"),
    {
      config: control,
      schema: {
        tags,
        summary: "Stop a run: waiting nodes at once, running nodes within the grace period",
        params: schemas.RunParams,
        querystring: schemas.ActionQuery,
        body: schemas.StopBody,
        response: { 200: schemas.RunStatusReply, ...errors(400, 409) },
      },
    },
    async (request) => {
      const runId = runIdOf(request.params);
      const asked = { ...request.query, reason: request.body?.reason ?? null };
      const { status, ...effect } = await runs.stop(runId, actorOf(request), asked);
      return { runId, status, ...(request.query.dryRun && effect) };
    },
  );

  http.post(
    actionPath("/runs/:runId", "resume"),
    {
      config: control,
      schema: {
        tags,
        summary: "Resume a stopped run",
        params: schemas.RunParams,
        querystring: schemas.ActionQuery,
        body: NoBody,
        response: { 200: schemas.RunStatusReply, ...errors(400, 409) },
      },
    },
    async (request) => {
      const runId = runIdOf(request.params);
      const { status, ...effect } = await runs.resume(runId, actorOf(request), request.query);
      return { runId, status, ...(request.query.dryRun && effect) };
    },
  );

  http.post(
    actionPath("/runs/:runId", "retry"),
    {
      config: control,
      schema: {
        tags,
        summary: "Retry all failed and stopped nodes and their skipped descendants",
        params: schemas.RunParams,
        querystring: schemas.RetryQuery,
        body: schemas.StopBody,
        response: { 200: schemas.RunRetryReply, ...errors(400, 409) },
      },
    },
    async (request) => {
      const runId = runIdOf(request.params);
      const asked = { ...request.query, reason: request.body?.reason ?? null };
      const { status, nodes, revision } = await runs.retry(runId, asked, actorOf(request));
      const { dryRun } = request.query;
      return { runId, status, dryRun, nodes, ...(dryRun && { revision }) };
    },
  );

  http.post(
    actionPath("/runs/:runId/nodes/:nodeId", "retry"),
    {
      config: control,
      schema: {
        tags,
        summary: "Retry a failed or stopped node, or end its back-off, even while others run",
        description: "`artifactJson` is the node's artifact until the attempt ends, and its `ctx.checkpoint`.",
        params: schemas.NodeParams,
        querystring: schemas.RetryQuery,
        body: schemas.NodeActionBody,
        response: { 200: schemas.NodeRetryReply, ...errors(400, 409) },
      },
    },
    async (request) => {
      const runId = runIdOf(request.params);
      const { nodeId } = request.params;
      const asked = {
        ...request.query,
        nodeId,
        artifact: artifactOf(request.body),
        reason: request.body?.reason ?? null,
      };
      const { node, nodes, revision } = await runs.retry(runId, asked, actorOf(request));
      if (!node) throw new Error(`node ${nodeId} was retried but is not in the answer`);
      const { dryRun } = request.query;
      return { runId, nodeId, ...node, dryRun, nodes, ...(dryRun && { revision }) };
    },
  );

  http.post(
    actionPath("/runs/:runId/nodes/:nodeId", "complete"),
    {
      config: control,
      schema: {
        tags,
        summary: "Set a node to SUCCESS with the given artifact; its children can run",
        params: schemas.NodeParams,
        querystring: schemas.ActionQuery,
        body: schemas.NodeActionBody,
        response: { 200: schemas.NodeActionReply, ...errors(400, 409) },
      },
    },
    async (request) => {
      const runId = runIdOf(request.params);
      const { params, query, body } = request;
      const { nodeId } = params;
      const asked = { ...query, nodeId, artifact: artifactOf(body), reason: body?.reason ?? null };
      const { status, attempt, ...effect } = await runs.complete(runId, asked, actorOf(request));
      return { runId, nodeId, status, attempt, ...(query.dryRun && effect) };
    },
  );
}

function filterOf(query: Omit<schemas.RunsQuery, "page" | "size" | "ids">) {
  const time = (text: string | undefined) => (text === undefined ? null : timeOf(text));
  const { chainId = null, status = null, opTime = null, from, to, q = "", parentRunId = null, jobId = null } = query;
  const { id = null, trigger = null, triggeredBy = null, after = null } = query;
  const times = { from: time(from), to: time(to) };
  const waits = waitsOf(query.waitsFor);
  return { chainId, status, opTime, ...times, q, id, parentRunId, jobId, trigger, triggeredBy, ...waits, after };
}

/** `table:ORDERS`; the schema allows nothing else than these. */
function waitsOf(waitsFor = "") {
  const [cause, ...name] = waitsFor.split(":");
  return {
    missingTable: cause === "table" ? name.join(":") : null,
    fullPool: cause === "pool" ? name.join(":") : null,
    slot: cause === "slot" ? (true as const) : null,
    retry: cause === "retry" ? (true as const) : null,
  };
}

/** Characters of what is no id. */
const WRONG_ID_SHOWN = 60;

function runIdsOf(list: string): readonly string[] {
  const ids = list.split(",");
  const wrong = ids.find((id) => !isUuid(id));
  if (wrong !== undefined)
    throw invalid(`The parameter \`ids\` has "${oneLine(wrong, WRONG_ID_SHOWN)}", which is no id of a run`);
  if (ids.length > schemas.RUN_IDS_MAX) throw invalid(`The parameter \`ids\` has more than ${schemas.RUN_IDS_MAX} ids`);
  return ids;
}

/** A `+` that was not encoded arrives as a space. */
function timeOf(text: string): Date {
  return new Date(text.replace(" ", "+"));
}

/** JSON text, as in the JobChain API, or the value itself. */
function artifactOf(body: schemas.NodeActionBody): unknown {
  const given = body?.artifactJson ?? null;
  if (typeof given !== "string") return given;
  try {
    return parseJson(Buffer.from(given));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const because = error.message.replace(/^The body/, "it").replace(/\.$/, "");
    throw kernelError("VALIDATION_FAILED", {}, { reason: `The text of \`artifactJson\` cannot be used: ${because}` });
  }
}
