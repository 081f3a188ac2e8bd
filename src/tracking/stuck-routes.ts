/** The API of stuck shards: the list, and a retry of all that match, with a preview. */

import { invalid } from "../kernel/errors.ts";
import { DryRunQuery, errors } from "../kernel/http/schemas.ts";
import { actorOf, type Http } from "../kernel/http/server.ts";
import * as schemas from "./schemas.ts";
import { STAGES } from "./states.ts";
import type { StuckPlace } from "./store/stuck.ts";
import type { Stuck } from "./stuck.ts";
import { withoutNulls } from "./without-nulls.ts";

/** Under `/api/v1/pipeline`. */
export function stuckRoutes(http: Http, stuck: Stuck): void {
  const tags = ["pipeline"];

  http.get(
    "/stuck",
    {
      config: { scope: "pipeline:read" },
      schema: {
        tags,
        summary: "List stuck shards with the reason, by file, shard and stage",
        description:
          "`failed`: until it is retried. `lease_expired`: its worker stopped responding, and it was not reclaimed yet. `started_long`: started more than an hour ago without a lease.",
        querystring: schemas.StuckQuery,
        response: { 200: schemas.StuckReply, ...errors(400) },
      },
    },
    async ({ query: { reason, stage, q, after, limit } }) => {
      const items = await stuck.list(
        { reason: reason ?? null, stage: stage ?? null, prefix: q ?? "" },
        { after: after === undefined ? undefined : placeOf(after), limit },
      );
      const last = items.at(-1);
      return {
        items: items.map(withoutNulls),
        next: last && items.length === limit ? `${last.filename}/${last.shard}/${last.stage}` : null,
      };
    },
  );

  http.post(
    "/stuck::retry",
    {
      config: { scope: "pipeline:write" },
      schema: {
        tags,
        summary: "Retry all stuck shards that match; with `dryRun`, only count them",
        description:
          "They go back to their queues in batches of 1,000, at most 50,000 in one call: `more` says that some are left, and the same call again goes on. A call that was interrupted may be repeated.",
        querystring: DryRunQuery,
        body: schemas.RetryBody,
        response: { 200: schemas.RetryReply, ...errors(400) },
      },
    },
    async (request) => {
      const { stage, reason, q, filename, until } = request.body;
      return stuck.retry(
        {
          ...(stage === undefined ? {} : { stage }),
          ...(reason === undefined ? {} : { reason }),
          ...(q === undefined || q === "" ? {} : { prefix: q }),
          ...(filename === undefined ? {} : { filename }),
          ...(until === undefined ? {} : { until: new Date(until) }),
        },
        actorOf(request),
        request.query,
      );
    },
  );
}

/** `name/3/shard-worker`: a filename has no slash. */
function placeOf(text: string): StuckPlace {
  const [filename = "", shard = "", word] = text.split("/");
  const stage = STAGES.find((one) => one === word);
  if (!stage || !/^\d{1,10}$/.test(shard) || Number(shard) >= 2 ** 31)
    throw invalid("The parameter `after` is not the `next` of a page");
  return { filename, shard: Number(shard), stage };
}
