/** The API of the whole pipeline: the queues of all stages, files by shards, and the shards of a file. */
import { errors } from "../kernel/http/schemas.ts";
import type { Http } from "../kernel/http/server.ts";
import type { Grid } from "./grid.ts";
import * as schemas from "./schemas.ts";
import { withoutNulls } from "./without-nulls.ts";

/** Under `/api/v1/pipeline`. */
export function gridRoutes(http: Http, grid: Grid): void {
  const config = { scope: "pipeline:read" } as const;
  const tags = ["pipeline"];

  http.get(
    "/queues",
    {
      config,
      schema: {
        tags,
        summary: "Show what is ready, started, failed and stuck in each stage",
        response: { 200: schemas.QueuesReply },
      },
    },
    async () => ({ stages: (await grid.queues()).map(withoutNulls) }),
  );

  http.get(
    "/grid",
    {
      config,
      schema: {
        tags,
        summary: "Show where the shards of files are: one character for each, newest files first",
        description:
          "`*` is done. A digit is started in that stage, 1 to 4. A letter waits for that stage (`b`, `c`, `d`), and a capital has failed in it (`A` to `D`). `.` is no shard of the file.",
        querystring: schemas.GridQuery,
        response: { 200: schemas.GridReply, ...errors(400) },
      },
    },
    async ({ query: { stage, status, q, after, limit, from, shards: width } }) =>
      grid.window({ stage, status, prefix: q ?? "" }, { after: after ?? null, files: limit, from, width }),
  );

  http.get(
    "/files/:filename/shards",
    {
      config,
      schema: {
        tags,
        summary: "List shards of a file by number",
        params: schemas.FileParams,
        querystring: schemas.ShardsQuery,
        response: { 200: schemas.ShardsReply, ...errors(400, 404) },
      },
    },
    async ({ params: { filename }, query: { from, status, limit } }) => {
      const { items, next } = await grid.shards(filename, { from, status: status ?? null, limit });
      return { filename, items: items.map(withoutNulls), next };
    },
  );
}
