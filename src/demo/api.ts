/** The HTTP API as the story uses it, with a key and until Ctrl-C. */
import { followRun } from "../cli/chain/follow.ts";
import { createClient, type Request } from "../cli/common/client.ts";

type Query = NonNullable<Request["query"]>;

export interface Api {
  get<Reply>(path: string, query?: Query): Promise<Reply>;
  post<Reply>(path: string, body?: object): Promise<Reply>;
  put<Reply>(path: string, body: object): Promise<Reply>;
  /** Waits for the end of a run. */
  ended(runId: string): Promise<void>;
  /** Looks again until it is there, or patience is at an end: then the checks will tell. */
  settled(look: () => Promise<boolean>): Promise<void>;
}

const LOOK_EVERY_MS = 50;
const PATIENCE_MS = 10_000;

export function createApi({ url, key }: { url: string; key: string }, signal: AbortSignal): Api {
  const client = createClient({ flags: { url }, env: { MILLRACE_KEY: key } });
  return {
    get: (path, query = {}) => client.call({ method: "GET", path, query, signal }),
    post: (path, body) => client.call({ method: "POST", path, ...(body === undefined ? {} : { body }), signal }),
    put: (path, body) => client.call({ method: "PUT", path, body, signal }),
    async ended(runId) {
      await followRun(client, runId, { signal });
    },
    async settled(look) {
      const patience = performance.now() + PATIENCE_MS;
      while (!(await look()) && performance.now() < patience) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    },
  };
}
