/** Reads of runs and their nodes for the API. An error says which is missing: the run, or a node of it. */
import type { Db } from "../../kernel/data/db.ts";
import type { ApiError } from "../../kernel/errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { chainsError } from "../catalogue.ts";
import type { Dag, NodeDef } from "../definitions/dag.ts";
import { type LogRow, readLog } from "../store/logs.ts";
import * as store from "../store/reads.ts";

export interface RunReads {
  list(filter: store.RunFilter, page: { size: number; offset: number }): ReturnType<typeof store.listRuns>;
  get(runId: string): Promise<store.RunDetailRow>;
  dag(runId: string): Promise<Dag>;
  nodes(runId: string, asked?: store.NodesAsked): Promise<store.NodeRow[]>;
  node(runId: string, nodeId: string): Promise<store.NodeRow & { def: NodeDef }>;
  /** Oldest first. */
  attempts(runId: string, nodeId: string): Promise<store.AttemptRow[]>;
  log(runId: string, nodeId: string, page: LogPage): Promise<LogRow[]>;
  events(runId: string, page: { limit: number; offset: number }): Promise<store.EventRow[]>;
}

interface LogPage {
  attempt: number | null;
  after: string;
  limit: number;
}

export function createRunReads({ db }: { db: Db }): RunReads {
  const noRun = (runId: string) => chainsError("RUN_NOT_FOUND", { runId });

  async function noNode(runId: string, nodeId: string): Promise<ApiError> {
    const ids = await store.readNodeIds(db, runId);
    if (ids.length === 0 && !(await store.readRun(db, runId))) return noRun(runId);
    return chainsError("NODE_NOT_FOUND", { runId, nodeId }, { hint: didYouMean(nodeId, ids) });
  }

  async function needNode(runId: string, nodeId: string): Promise<void> {
    if (!(await store.hasNode(db, runId, nodeId))) throw await noNode(runId, nodeId);
  }

  return {
    list: (filter, page) => store.listRuns(db, filter, page),

    async get(runId) {
      const row = await store.readRun(db, runId);
      if (!row) throw noRun(runId);
      return row;
    },

    async dag(runId) {
      const dag = await store.readRunDag(db, runId);
      if (!dag) throw noRun(runId);
      return dag;
    },

    nodes: (runId, asked) => store.readNodes(db, runId, asked),

    async node(runId, nodeId) {
      const row = await store.readNode(db, runId, nodeId);
      if (!row) throw await noNode(runId, nodeId);
      return row;
    },

    async attempts(runId, nodeId) {
      await needNode(runId, nodeId);
      return store.readAttempts(db, runId, nodeId);
    },

    async log(runId, nodeId, page) {
      await needNode(runId, nodeId);
      return readLog(db, { runId, nodeId, ...page });
    },

    async events(runId, page) {
      const rows = await store.readEvents(db, runId, page);
      if (rows.length === 0 && !(await store.readRun(db, runId))) throw noRun(runId);
      return rows;
    },
  };
}
