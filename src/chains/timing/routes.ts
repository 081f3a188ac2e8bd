/** The API for how long runs and nodes took: timeline, comparison and grid. */
import { errors } from "../../kernel/http/schemas.ts";
import type { Http } from "../../kernel/http/server.ts";
import { chainIdOf, runIdOf } from "../ids.ts";
import type { Comparison, Grid, TimedRun, Timeline } from "../replies.ts";
import { RunParams } from "../runs/schemas.ts";
import { ChainParams } from "../schemas.ts";
import type { TimedRunRow } from "../store/timing.ts";
import * as schemas from "./schemas.ts";
import type { Timing } from "./timing.ts";

export function timingRoutes(http: Http, timing: Timing): void {
  const config = { scope: "run:read" } as const;
  const tags = ["runs"];

  http.get(
    "/runs/:runId/timeline",
    {
      config,
      schema: {
        tags,
        summary: "Show the earlier attempts of all nodes of a run, and its critical path",
        params: RunParams,
        response: { 200: schemas.TimelineReply, ...errors(400) },
      },
    },
    async ({ params }) => {
      const { attempts, isTruncated, criticalPath } = await timing.timeline(runIdOf(params));
      return {
        attempts: attempts.map(({ node_id, started_at, ended_at, ...row }) => ({
          ...row,
          nodeId: node_id,
          startedAt: started_at,
          endedAt: ended_at,
        })),
        truncated: isTruncated,
        criticalPath: [...criticalPath],
      } satisfies Timeline<Date>;
    },
  );

  http.get(
    "/runs/:runId/comparison",
    {
      config,
      schema: {
        tags,
        summary: "Compare a run with another, node by node: what cost most comes first",
        description: "Without `with`, it is compared with the last successful run before it, among the 200 before it.",
        params: RunParams,
        querystring: schemas.ComparisonQuery,
        response: { 200: schemas.ComparisonReply, ...errors(400) },
      },
    },
    async ({ params, query }) => {
      const withRunId = query.with === undefined ? null : runIdOf({ runId: query.with });
      const { run, other, earlier, nodes } = await timing.compare(runIdOf(params), withRunId);
      return {
        run: timedRunReply(run),
        with: other ? timedRunReply(other) : null,
        earlier: earlier.map(timedRunReply),
        nodes: nodes.slice(0, query.limit).map((node) => ({ ...node, waitsFor: [...node.waitsFor] })),
        total: nodes.length,
      } satisfies Comparison<Date>;
    },
  );

  http.get(
    "/chains/:chainId/grid",
    {
      config,
      schema: {
        tags,
        summary: "Show the states of a chain's nodes in its last runs",
        params: ChainParams,
        querystring: schemas.GridQuery,
        response: { 200: schemas.GridReply, ...errors(400) },
      },
    },
    async ({ params, query: { until, ...asked } }) => {
      const untilRunId = until === undefined ? null : runIdOf({ runId: until });
      const { runs, nodes, total } = await timing.grid(chainIdOf(params), { ...asked, until: untilRunId });
      return {
        runs: runs.map(timedRunReply),
        nodes: nodes.map((node) => ({ ...node, statuses: [...node.statuses] })),
        from: asked.from,
        total,
      } satisfies Grid<Date>;
    },
  );
}

function timedRunReply(row: TimedRunRow) {
  return {
    runId: row.run_id,
    opTime: row.op_time,
    status: row.status,
    chainVersion: row.chain_version,
    createdAt: row.created_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  } satisfies TimedRun<Date>;
}
