/** Chains by a part of their name or description, and runs by the beginning of their id or by chain and opTime. */
import { call, pathTo, withQuery } from "../api/client.ts";
import type { Finder, Found } from "../app/found.ts";
import { common } from "../words/common.ts";
import { language } from "../words/words.ts";
import { type Chain, paths, type Run } from "./api.ts";
import { parseRunQuery } from "./run-query.ts";
import { RUN_STATES } from "./states.ts";

const FOUND_MAX = 10;
/** Chains whose runs are looked up by opTime. */
const CHAINS_MAX = 5;

interface Listed<Item> {
  items: readonly Item[];
}

async function chainsNamed(keyword: string, size: number, signal: AbortSignal): Promise<readonly Chain[]> {
  return (await call<Listed<Chain>>(withQuery(paths.chains, { keyword, size }), { signal })).data.items;
}

async function runsBy(query: Record<string, string>, signal: AbortSignal): Promise<Found[]> {
  const { items } = (await call<Listed<Run>>(paths.runs({ ...query, size: FOUND_MAX }), { signal })).data;
  const text = common[language.get()];
  return items.map(({ runId, jobName, opTime, status }) => ({
    title: runId,
    detail: [jobName, opTime, text[RUN_STATES[status]]].filter(Boolean).join(" · "),
    to: pathTo`/chains/runs/${runId}`,
  }));
}

async function findRuns(query: string, signal: AbortSignal): Promise<Found[]> {
  const lists = parseRunQuery(query).map(async ({ chain, ...asked }) => {
    if (chain === undefined) return runsBy(asked, signal);
    const chains = await chainsNamed(chain, CHAINS_MAX, signal);
    return (await Promise.all(chains.map(({ chainId }) => runsBy({ ...asked, chainId }, signal)))).flat();
  });
  return (await Promise.all(lists)).flat();
}

async function findChains(query: string, signal: AbortSignal): Promise<Found[]> {
  return (await chainsNamed(query, FOUND_MAX, signal)).map(({ chainId, name, description }) => ({
    title: name,
    ...(description !== null && { detail: description }),
    to: pathTo`/chains/${chainId}`,
  }));
}

export const chainFinder: Finder = {
  icon: "chains",
  scope: "run:read",
  async find(query, signal) {
    // A key may lack the scope of one of the two.
    const lists = await Promise.all([findChains, findRuns].map((find) => find(query, signal).catch((): Found[] => [])));
    return lists.flat();
  },
};
