/** The routes for administrators: keys, the audit log, the doctor and the settings in force. */
import { Type } from "typebox";
import { audit, auditedActions, listAudit } from "../auth/audit.ts";
import type { Keys } from "../auth/keys.ts";
import type { Caller } from "../auth/scopes.ts";
import type { MergedCatalogue } from "../catalogue.ts";
import type { Db } from "../data/db.ts";
import { transact } from "../data/dry-run.ts";
import { type DoctorCheck, examine } from "../doctor.ts";
import type { AuditPage, Finding, KeyItem, KeysReply, SettingInForce } from "../replies.ts";
import { Body, DryRunQuery, errors, ReplyTime, Time } from "./schemas.ts";
import { actorOf, type Http } from "./server.ts";

const Key = {
  id: Type.String(),
  name: Type.String(),
  hint: Type.String({ description: "Its first characters." }),
  scopes: Type.Array(Type.String()),
  tenantId: Type.Optional(Type.Number()),
  source: Type.Optional(Type.String()),
  rateLimitPerMinute: Type.Optional(Type.Integer()),
  createdAt: ReplyTime,
  createdBy: Type.String(),
  usedAt: Type.Optional(
    Type.Unsafe<Date>({
      ...ReplyTime,
      description: "Its last use, up to five minutes late. Absent if it was not used.",
    }),
  ),
  revokedAt: Type.Optional(ReplyTime),
};
const KeyName = Type.String({
  minLength: 1,
  maxLength: 128,
  // It is read before a key is revoked, so nothing in it may show it in another order.
  pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]+$",
  description: "A name without control characters, among them those that change the direction of text.",
});
const AUDIT_LIMIT_MAX = 1_000;
const SHORT = { minLength: 1, maxLength: 256 } as const;

export interface AdminDeps {
  db: Db;
  keys: Keys;
  checks: readonly DoctorCheck[];
  /** The scopes and sources that keys can have. */
  catalogue: Pick<MergedCatalogue, "scopes" | "keySources">;
  /** Of this process. */
  settings: readonly SettingInForce[];
}

export function adminSurfaces(http: Http, { db, keys, checks, catalogue, settings }: AdminDeps): void {
  const scopes = Object.keys(catalogue.scopes);
  const NewKey = Body({
    name: KeyName,
    scopes: Type.Array(Type.Enum(scopes), { minItems: 1, maxItems: scopes.length }),
    tenantId: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    source: Type.Optional(Type.Enum([...catalogue.keySources])),
    rateLimitPerMinute: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000 })),
  });
  const config = { scope: "admin" } as const;

  http.post(
    "/keys",
    {
      config,
      schema: {
        tags: ["admin"],
        summary: "Create a key; it is shown only in this answer",
        body: NewKey,
        response: { 200: Type.Object({ ...Key, key: Type.String() }), ...errors(400) },
      },
    },
    async (request) => {
      const actor = actorOf(request);
      return db.tx(async (tx) => {
        const { key, ...row } = await keys.create(tx, request.body, actor.caller.name);
        await audit(tx, actor, "key.create", row.id, { name: row.name, scopes: row.scopes });
        return { ...keyReply(row), key };
      });
    },
  );

  http.get(
    "/keys",
    {
      config,
      schema: {
        tags: ["admin"],
        summary: "List keys, newest first",
        response: {
          200: Type.Object({
            items: Type.Array(Type.Object(Key)),
            scopes: Type.Array(Type.String(), { description: "The scopes that a key can have." }),
          }),
        },
      },
    },
    async () => ({ items: (await keys.list()).map(keyReply), scopes }) satisfies KeysReply<Date>,
  );

  http.delete(
    "/keys/:id",
    {
      config,
      schema: {
        tags: ["admin"],
        summary: "Revoke a key; it stops working at once",
        params: Body({ id: Type.String({ format: "uuid" }) }),
        querystring: DryRunQuery,
        response: { 200: Type.Object(Key), ...errors(400, 404) },
      },
    },
    async (request) => {
      const { id } = request.params;
      const revoked = await transact(db, request.query, async (tx) => {
        const row = await keys.revoke(tx, id);
        await audit(tx, actorOf(request), "key.revoke", id, { name: row.name });
        return row;
      });
      return keyReply(revoked);
    },
  );

  http.get(
    "/audit",
    {
      config,
      schema: {
        tags: ["admin"],
        summary: "Who did what, newest first",
        querystring: Body({
          who: Type.Optional(
            Type.String({
              ...SHORT,
              description: "The name of a key. `me` is the caller, with all sessions of its key.",
            }),
          ),
          action: Type.Optional(Type.String({ ...SHORT, description: "For example `key.create`." })),
          what: Type.Optional(Type.String({ ...SHORT, description: "The target, or its beginning." })),
          from: Type.Optional(Time),
          to: Type.Optional(Time),
          limit: Type.Integer({ minimum: 1, maximum: AUDIT_LIMIT_MAX, default: 100 }),
          before: Type.Optional(
            Type.String({ pattern: "^\\d{1,18}$", description: "The `next` of the previous page." }),
          ),
        }),
        response: {
          200: Type.Object({
            items: Type.Array(
              Type.Object({
                id: Type.String(),
                at: ReplyTime,
                actor: Type.String({ description: "The name of the key; names are not unique." }),
                keyId: Type.Union([Type.String(), Type.Null()], {
                  description: "Null for a caller without a stored key.",
                }),
                action: Type.String(),
                target: Type.String(),
                details: Type.Unknown(),
                address: Type.String(),
                requestId: Type.String(),
              }),
            ),
            next: Type.Union([Type.String(), Type.Null()]),
            actions: Type.Array(Type.String(), { description: "The actions that the log has." }),
          }),
          ...errors(400),
        },
      },
    },
    async ({ caller, query: { limit, before = null, who, action = null, what = null, from, to } }) => {
      const times = { from: from === undefined ? null : new Date(from), to: to === undefined ? null : new Date(to) };
      const filter = { ...personOf(who, caller), action, target: what, ...times, before };
      const [rows, actions] = await Promise.all([listAudit(db, filter, limit), auditedActions(db)]);
      const items = rows.map(({ request_id, key_id, ...row }) => ({ ...row, keyId: key_id, requestId: request_id }));
      return {
        items,
        next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null,
        actions,
      } satisfies AuditPage<Date>;
    },
  );

  http.get(
    "/doctor",
    {
      config,
      schema: {
        tags: ["admin"],
        summary: "Check this installation",
        response: {
          200: Type.Object({
            findings: Type.Array(
              Type.Object({
                check: Type.String(),
                verdict: Type.Enum(["ok", "warning", "broken"] as const),
                found: Type.String(),
                advice: Type.Optional(Type.String()),
                isListed: Type.Optional(
                  Type.Literal(true, {
                    description: "GET /api/v1/overview has an entry for each thing that it names.",
                  }),
                ),
              }),
            ),
          }),
        },
      },
    },
    async () => ({ findings: (await examine(db, checks)) satisfies Finding[] }),
  );

  http.get(
    "/settings",
    {
      config,
      schema: {
        tags: ["admin"],
        summary: "Show the settings in force in the process that answers, and where each comes from",
        response: {
          200: Type.Object({
            items: Type.Array(
              Type.Object({
                name: Type.String({ description: "The environment variable, or the path in `millrace.yaml`." }),
                value: Type.Optional(Type.String({ description: "Absent if it is unset, or secret." })),
                isSecret: Type.Boolean(),
                origin: Type.Enum(["default", "environment", "flag", "file", "unset"] as const),
                from: Type.Optional(Type.String({ description: "The variable, the flag, or the file with its line." })),
                description: Type.Optional(Type.String()),
              }),
            ),
          }),
        },
      },
    },
    async () => ({ items: [...settings] }),
  );
}

type KeyRow = Awaited<ReturnType<Keys["list"]>>[number];

function keyReply(row: KeyRow) {
  return {
    id: row.id,
    name: row.name,
    hint: row.hint,
    scopes: row.scopes,
    ...(row.tenant_id === null ? {} : { tenantId: Number(row.tenant_id) }),
    ...(row.source === null ? {} : { source: row.source }),
    ...(row.rate_limit_per_minute === null ? {} : { rateLimitPerMinute: row.rate_limit_per_minute }),
    createdAt: row.created_at,
    createdBy: row.created_by,
    ...(row.used_at === null ? {} : { usedAt: row.used_at }),
    ...(row.revoked_at === null ? {} : { revokedAt: row.revoked_at }),
  } satisfies KeyItem<Date>;
}

/** A key is known by its id: names are not unique. */
function personOf(who: string | undefined, { name, keyId }: Caller): { actor: string | null; keyId: string | null } {
  if (who !== "me") return { actor: who ?? null, keyId: null };
  return keyId === null ? { actor: name, keyId: null } : { actor: null, keyId };
}
