/** A Millrace that runs chains, for tests of their API: helpers for common calls, and nodes that call functions of the test. */
import { randomUUID } from "node:crypto";
import { afterEach, expect } from "vitest";
import type { NodeDef } from "../src/chains/definitions/dag.ts";
import type { NodeStatus, RunStatus } from "../src/chains/engine/states.ts";
import { findViolations } from "../src/chains/store/invariants.ts";
import type { NodeContext, NodeResult } from "../src/chains/types/node-type.ts";
import type { Answer, Json } from "./client.ts";
import type { TestDatabase } from "./database.ts";
import { type TestMillrace, useMillrace } from "./millrace.ts";
import { until } from "./until.ts";

/** A node in the reply of `GET /runs/{runId}/nodes`. */
export interface NodeView extends Json {
  nodeId: string;
  status: NodeStatus;
  attempt: number;
  lastError: string | null;
  artifactJson: string | null;
  artifact: unknown;
  waitingFor: string | null;
}

export interface TestChains extends TestMillrace {
  /** Creates a chain, with a random name unless `fields` has one; returns its id. */
  define(nodes: readonly NodeDef[], fields?: Json): Promise<string>;
  /** Returns the run's id. */
  start(chainId: string, body?: Json): Promise<string>;
  /** Creates a chain and starts it; returns the run's id. */
  run(nodes: readonly NodeDef[], fields?: Json): Promise<string>;
  /** Waits until the run has the status; returns the run. */
  reaches(runId: string, status: RunStatus): Promise<Json>;
  nodes(runId: string): Promise<NodeView[]>;
  node(runId: string, nodeId: string): Promise<NodeView>;
  nodeReaches(runId: string, nodeId: string, status: NodeStatus): Promise<NodeView>;
}

/** Call it at the top of a test file, after `useDatabase`. It checks the invariants after each test. */
export function useChains(database: TestDatabase): TestChains {
  const millrace = useMillrace(database, {
    env: { MILLRACE_ROLES: "api,scheduler,worker" },
    chains: { nodeTypes: ["./scripted-node.js"], stopGraceSeconds: 600, drainSeconds: 0 },
  });
  afterEach(async () => {
    expect(await findViolations(database.db)).toEqual([]);
  });

  const get = async <Body>(path: string) => done(await millrace.api.get<Body>(`/api/v1${path}`));
  const post = async <Body>(path: string, body?: unknown) =>
    done(await millrace.api.post<Body>(`/api/v1${path}`, body));

  const chains: Omit<TestChains, keyof TestMillrace> = {
    async define(nodes, fields = {}) {
      const body = { name: `chain ${randomUUID()}`, dagJson: { nodes }, ...fields };
      return (await post<{ chainId: string }>("/chains", body)).chainId;
    },
    start: async (chainId, body) => (await post<{ runId: string }>(`/chains/${chainId}:start`, body)).runId,
    run: async (nodes, fields) => chains.start(await chains.define(nodes, fields)),
    reaches: (runId, status) =>
      until(async () => {
        const run = await get<Json>(`/runs/${runId}`);
        return run["status"] === status && run;
      }, `run ${runId} to be ${status}`),
    nodes: (runId) => get<NodeView[]>(`/runs/${runId}/nodes`),
    async node(runId, nodeId) {
      const node = (await chains.nodes(runId)).find((one) => one.nodeId === nodeId);
      if (!node) throw new Error(`run ${runId} has no node ${nodeId}`);
      return node;
    },
    nodeReaches: (runId, nodeId, status) =>
      until(async () => {
        const node = await chains.node(runId, nodeId);
        return node.status === status && node;
      }, `node ${nodeId} of run ${runId} to be ${status}`),
  };
  return Object.assign(millrace, chains);
}

function done<Body>({ status, body }: Answer<Body>): Body {
  if (status !== 200) throw new Error(`answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

/** Status and code of an error reply. */
export function refusal({ status, body }: Answer<Json>): [status: number, code: unknown] {
  expect(body["error"]).toMatch(/^[A-Z].{10,}[^.][.?]$/s);
  return [status, body["code"]];
}

type Script = (ctx: NodeContext, input: unknown) => NodeResult | Promise<NodeResult>;
const scripts = new Map<string, Script>();
Object.assign(globalThis, { [Symbol.for("millrace.test.scripts")]: scripts });

/** A node that calls this function; `fields` are further fields of its definition. */
export function scripted(id: string, script: Script, fields: Partial<NodeDef> = {}): NodeDef {
  const key = randomUUID();
  scripts.set(key, script);
  return { id, type: "scripted", ...fields, cfg: { script: key, ...fields.cfg } };
}

/** Runs until it is stopped. */
export const holds: Script = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));

export const fails: Script = () => {
  throw new Error("it fails on purpose");
};
