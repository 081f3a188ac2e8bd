/** The calls of the HTTP API that the scenario makes. Ctrl-C ends them. */
import { setTimeout as sleep } from "node:timers/promises";
import { followRun } from "../cli/chain/follow.ts";
import { createClient, type Request } from "../cli/common/client.ts";
import type { PlanDetail } from "../cli/harvest/api.ts";
import { followPlan } from "../cli/harvest/follow.ts";

type Query = NonNullable<Request["query"]>;

export interface Api {
  get<Reply>(path: string, query?: Query): Promise<Reply>;
  post<Reply>(path: string, body?: object): Promise<Reply>;
  put<Reply>(path: string, body: object, query?: Query): Promise<Reply>;
  /** Waits for the end of a run, and returns its status. */
  ended(runId: string): Promise<string>;
  /** Waits until a plan has ended and its windows have landed. `onPlan` gets each state on the way. */
  harvested(planId: string, onPlan: (plan: PlanDetail) => void): Promise<PlanDetail>;
  /** Polls until the condition is true or a time limit has passed; the checks then show what is missing. */
  waitUntil(condition: () => Promise<boolean>): Promise<void>;
}

const POLL_MS = 50;
const WAIT_MS_MAX = 10_000;

export interface Access {
  url: string;
  key: string;
}

export function createApi({ url, key }: Access, signal: AbortSignal): Api {
  const client = createClient({ flags: { url }, env: { MILLRACE_KEY: key } });
  return {
    get: (path, query = {}) => client.call({ method: "GET", path, query, signal }),
    post: (path, body) => client.call({ method: "POST", path, ...(body === undefined ? {} : { body }), signal }),
    put: (path, body, query = {}) => client.call({ method: "PUT", path, query, body, signal }),
    ended: (runId) => followRun(client, runId, { signal }),
    harvested: (planId, onPlan) =>
      followPlan(client, planId, { follower: { onPlan, onDisconnect: () => undefined }, exists: true, signal }),
    async waitUntil(condition) {
      const deadline = performance.now() + WAIT_MS_MAX;
      while (!(await condition()) && performance.now() < deadline) await sleep(POLL_MS);
    },
  };
}
