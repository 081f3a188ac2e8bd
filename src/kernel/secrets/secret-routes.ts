/** The routes of named secrets. They store, list and delete secrets; none of them returns a value. */
import { Type } from "typebox";
import { audit } from "../auth/audit.ts";
import type { Db } from "../data/db.ts";
import { transact } from "../data/dry-run.ts";
import { Body, DryRunQuery, errors, ReplyTime } from "../http/schemas.ts";
import { actorOf, type Http } from "../http/server.ts";
import {
  type NamedSecretRow,
  type NamedSecrets,
  SECRET_LENGTH_MAX,
  SECRET_LENGTH_MIN,
  SECRET_NAME,
} from "./named-secrets.ts";

const Name = Body({
  name: Type.String({
    pattern: `^${SECRET_NAME}$`,
    description: "Letters, digits and underscores, 128 at most, and no digit first.",
  }),
});
const Secret = Type.Object({
  name: Type.String(),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
  updatedBy: Type.String({ description: "The name of the key that set it last." }),
});

export function secretRoutes(http: Http, { db, secrets }: { db: Db; secrets: NamedSecrets }): void {
  const config = { scope: "admin" } as const;
  const tags = ["admin"];

  http.get(
    "/secrets",
    {
      config,
      schema: {
        tags,
        summary: "List the names of the secrets",
        response: { 200: Type.Object({ items: Type.Array(Secret) }) },
      },
    },
    async () => ({ items: (await secrets.list()).map(secretReply) }),
  );

  http.put(
    "/secrets/:name",
    {
      config,
      schema: {
        tags,
        summary: "Store a secret, or replace it; every later use gets the new value",
        params: Name,
        querystring: DryRunQuery,
        body: Body({
          value: Type.String({
            minLength: SECRET_LENGTH_MIN,
            maxLength: SECRET_LENGTH_MAX,
            pattern: "\\S",
            description: "Not white space alone.",
          }),
        }),
        response: { 200: Secret, ...errors(400, 409, 503) },
      },
    },
    async (request) => {
      const actor = actorOf(request);
      const { name } = request.params;
      return transact(db, request.query, async (tx) => {
        const row = await secrets.set(tx, { name, value: request.body.value, by: actor.caller.name });
        await audit(tx, actor, "secret.set", name, {});
        return secretReply(row);
      });
    },
  );

  http.delete(
    "/secrets/:name",
    {
      config,
      schema: {
        tags,
        summary: "Delete a secret that nothing names",
        params: Name,
        querystring: DryRunQuery,
        response: { 200: Secret, ...errors(400, 404, 409) },
      },
    },
    async (request) => {
      const { name } = request.params;
      return transact(db, request.query, async (tx) => {
        const row = await secrets.remove(tx, name);
        await audit(tx, actorOf(request), "secret.delete", name, {});
        return secretReply(row);
      });
    },
  );
}

function secretReply({ name, created_at, updated_at, updated_by }: NamedSecretRow) {
  return { name, createdAt: created_at, updatedAt: updated_at, updatedBy: updated_by };
}
