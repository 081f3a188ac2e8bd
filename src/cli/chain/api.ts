/** The parts of the chains API that `millrace chain` uses, and the lookup of chains. */
import type { ChainDetail, NodeStatus, Run, RunNode, RunStatus } from "../../chains/index.ts";
import { OperatorError } from "../../kernel/errors.ts";
import { type Client, pathTo, Refusal } from "../common/client.ts";
import { EXIT } from "../common/exit-codes.ts";
import type { Page } from "../common/paging.ts";

export type { ChainDetail, NodeStatus, Run, RunNode, RunStatus };

export interface ChainSummary {
  chainId: string;
  name: string;
  enabled: boolean;
  version: number;
  nodeCount: number;
  lastRun?: { runId: string; status: RunStatus; createdAt: string } | null;
}

export async function findChainByName(client: Client, name: string): Promise<ChainSummary | undefined> {
  const { items } = await client.call<Page<ChainSummary>>({ method: "GET", path: "api/v1/chains", query: { name } });
  return items[0];
}

/** Finds a chain by its name or id. */
export async function chainIdOf(client: Client, nameOrId: string): Promise<string> {
  const named = await findChainByName(client, nameOrId);
  if (named) return named.chainId;
  try {
    const path = pathTo`api/v1/chains/${nameOrId}`;
    return (await client.call<ChainDetail>({ method: "GET", path })).chainId;
  } catch (error) {
    if (!(error instanceof Refusal) || ![EXIT.usage, EXIT.notFound].some((code) => code === error.exitCode))
      throw error;
    throw new OperatorError(
      `There is no chain with the name or id \`${nameOrId}\`. See \`millrace chain ls\`.`,
      EXIT.notFound,
    );
  }
}

/** Improves the error if `runId` is the name of a chain. */
export async function withRunHint<Result>(client: Client, runId: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refusal) || error.exitCode !== EXIT.notFound) throw error;
    const named = await findChainByName(client, runId).catch(() => undefined);
    if (!named) throw error;
    throw error.withMessage(`\`${runId}\` is a chain, not a run: see \`millrace chain runs ${runId}\`.`);
  }
}

export async function fetchRun(client: Client, runId: string): Promise<Run> {
  return client.call<Run>({ method: "GET", path: pathTo`api/v1/runs/${runId}` });
}

/** In the order of the definition. */
export async function fetchNodes(client: Client, runId: string): Promise<RunNode[]> {
  return client.call<RunNode[]>({ method: "GET", path: pathTo`api/v1/runs/${runId}/nodes` });
}
