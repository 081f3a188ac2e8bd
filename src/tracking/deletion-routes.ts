/** The route that deletes a file. */
import { Type } from "typebox";
import type { Db } from "../kernel/data/db.ts";
import { DryRunQuery, errors } from "../kernel/http/schemas.ts";
import { actorOf, type Http } from "../kernel/http/server.ts";
import type { TrackingHints } from "./catalogue.ts";
import { deleteFile } from "./delete-file.ts";
import * as schemas from "./schemas.ts";

export function deletionRoutes(http: Http, { db, hints }: { db: Db; hints: TrackingHints }): void {
  const tags = ["pipeline"];

  http.delete(
    "/files/:filename",
    {
      config: { scope: "pipeline:write" },
      schema: {
        tags,
        summary: "Delete a file with its shards, unless a worker holds one",
        params: schemas.FileParams,
        querystring: DryRunQuery,
        response: {
          200: Type.Object({ filename: Type.String(), deleted_shards: Type.Integer(), dry_run: Type.Boolean() }),
          ...errors(400, 404, 409),
        },
      },
    },
    async (request) => {
      const { params, query } = request;
      const deleted = await deleteFile({ db, hints }, params.filename, actorOf(request), query);
      return { filename: params.filename, deleted_shards: deleted, dry_run: query.dryRun };
    },
  );
}
