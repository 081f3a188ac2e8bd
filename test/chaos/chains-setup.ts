/**
 * Shared by the chaos tests of chains: servers whose nodes write marks to a file (chains-nodes.mjs), a record of every status
 * change, and calls of the API.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NodeDef } from "../../src/chains/definitions/dag.ts";
import type { NodeStatus } from "../../src/chains/engine/states.ts";
import type { ChainsSettings } from "../../src/chains/settings.ts";
import { temporaryFolder } from "../../src/kernel/embedded-postgres/testing.fixture.ts";
import type { Answer } from "../client.ts";
import type { TestDatabase } from "../database.ts";
import { type Server, type ServerOptions, startServer } from "../server.ts";
import { until } from "../until.ts";

/** A line that a node wrote to the marks file while it ran. */
export interface Mark extends NodeAttempt {
  what: "began" | "did";
  pid: number;
}

export interface NodeAttempt {
  runId: string;
  nodeId: string;
  attempt: number;
}

export interface ChainsSetup {
  start(roles: string, database?: ServerOptions["database"]): Promise<Server>;
  /** In the order in which they were written, over all processes. */
  marks(): Mark[];
  /** Waits until the attempt has started; returns the pid of its process. */
  began(one: NodeAttempt): Promise<number>;
  /** Lets a `gated` node finish, now or when it starts. */
  openGate(one: NodeAttempt): Promise<void>;
}

const NODES = fileURLToPath(new URL("chains-nodes.mjs", import.meta.url));

export async function openSetup(
  database: TestDatabase | undefined,
  settings: Partial<ChainsSettings>,
): Promise<ChainsSetup> {
  const folder = await temporaryFolder();
  const config = join(folder, "millrace.yaml");
  await writeFile(config, JSON.stringify({ chains: { nodeTypes: [NODES], ...settings } }));
  await writeFile(join(folder, "marks"), "");

  const marks = () =>
    readFileSync(join(folder, "marks"), "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Mark);
  return {
    marks,
    start(roles, other) {
      const used = other ?? database;
      if (!used) throw new Error("a setup without a database needs one for each server");
      const env = { MILLRACE_ROLES: roles, MILLRACE_CONFIG: config, CHAOS_FOLDER: folder };
      return startServer({ database: used, env });
    },
    began: (one) =>
      until(
        () => marks().find(({ what, ...other }) => what === "began" && keyOf(other) === keyOf(one))?.pid,
        `${keyOf(one)} to begin`,
      ),
    openGate: (one) => writeFile(join(folder, `gate ${keyOf(one).replaceAll("/", " ")}`), ""),
  };
}

export function keyOf({ runId, nodeId, attempt }: NodeAttempt): string {
  return `${runId}/${nodeId}/${attempt}`;
}

/** Returns the chain's id. */
export async function define({ api }: Pick<Server, "api">, nodes: readonly NodeDef[]): Promise<string> {
  const { chainId } = done(await api.post("/api/v1/chains", { name: `chain ${randomUUID()}`, dagJson: { nodes } }));
  return chainId as string;
}

/** Returns the run's id. */
export async function startRun({ api }: Pick<Server, "api">, chainId: string): Promise<string> {
  const { runId } = done(await api.post(`/api/v1/chains/${chainId}:start`, {}));
  return runId as string;
}

export function done<Body>({ status, body }: Answer<Body>): Body {
  if (status !== 200) throw new Error(`answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

/** How a test queries the database. */
export type Store = Pick<TestDatabase, "query">;

export interface NodeRow extends NodeAttempt {
  status: NodeStatus;
  artifact: { attempt: number; pid: number; value: number } | null;
}

/** All nodes of all runs, or of one. */
export function nodeRows({ query }: Store, runId: string | null = null): Promise<NodeRow[]> {
  return query(
    `select run_id as "runId", node_id as "nodeId", attempt, status, artifact_json as artifact
     from chains.job_run_node where $1::uuid is null or run_id = $1 order by run_id, node_no`,
    [runId],
  );
}

export async function runReaches({ query }: Store, runId: string, status: string): Promise<void> {
  await until(async () => {
    const [row] = await query<{ status: string }>("select status from chains.job_run where run_id = $1", [runId]);
    return row?.status === status;
  }, `run ${runId} to be ${status}`);
}

/** Records every change of a node's status, in the transaction that makes it. */
export async function recordMoves({ query }: Store): Promise<void> {
  await query(`create table move (
    no bigint generated always as identity, at timestamptz not null default clock_timestamp(),
    run_id uuid not null, node_id text not null, attempt integer not null, before text not null, after text not null)`);
  await query(`create function record_move() returns trigger language plpgsql as $$
    begin
      insert into move (run_id, node_id, attempt, before, after)
      values (new.run_id, new.node_id, new.attempt, old.status, new.status);
      return null;
    end $$`);
  await query(`create trigger record_move after update on chains.job_run_node
    for each row when (old.status <> new.status) execute function record_move()`);
}

export interface Move extends NodeAttempt {
  before: NodeStatus;
  after: NodeStatus;
  atMs: number;
}

export function moves({ query }: Store): Promise<Move[]> {
  return query(
    `select run_id as "runId", node_id as "nodeId", attempt, before, after, (extract(epoch from at) * 1000)::float8 as "atMs"
     from move order by no`,
  );
}

/** The database's clock, which also times the moves. */
export async function nowMs({ query }: Store): Promise<number> {
  const [row] = await query<{ ms: number }>("select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms");
  return row?.ms ?? Number.NaN;
}

/** The nodes that a process, dead or suspended, still holds. */
export function heldBy({ query }: Store, pid: number): Promise<NodeAttempt[]> {
  return query(
    `select n.run_id as "runId", n.node_id as "nodeId", n.attempt from chains.live_node n
     join kernel.session s on s.id = n.session_id where n.state = 'leased' and s.process like '%:' || $1`,
    [String(pid)],
  );
}

/** Expires the session of a dead process at once instead of after 15 s, and wakes the timers. */
export async function endSessionOf({ query }: Store, pid: number): Promise<void> {
  await query("update kernel.session set expires_at = now() where process like '%:' || $1", [String(pid)]);
  await query("select pg_notify('millrace_wake', 'elsewhere chains.timer')");
}
