/** The routes that sign a person in to the console and out of it, and make links that sign in once. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { audit } from "../auth/audit.ts";
import type { ConsoleAccess } from "../auth/console-access.ts";
import { hasKey } from "../auth/console-secrets.ts";
import type { NewSession } from "../auth/console-sessions.ts";
import type { Keys } from "../auth/keys.ts";
import type { Caller } from "../auth/scopes.ts";
import type { Db, Tx } from "../data/db.ts";
import { invalid, kernelError } from "../errors.ts";
import { ANY_SCOPE, isAnonymous, PUBLIC } from "./authenticate.ts";
import { isCrossSite, refuseForeign } from "./browser.ts";
import { Body, errors, NoBody, ReplyTime } from "./schemas.ts";
import { actorOf, type Http } from "./server.ts";
import { cookieWith, cookieWithout, tokenIn } from "./session-cookie.ts";

const SECRET_LENGTH_MAX = 512;
const Secret = (description: string) => Type.Optional(Type.String({ maxLength: SECRET_LENGTH_MAX, description }));
const SignIn = Body({
  key: Secret("An API key."),
  code: Secret("What follows the `#` of a link. It is valid once, for 15 minutes."),
});
const WhoReply = Type.Object({
  name: Type.String({ description: "The name of the key." }),
  keyId: Type.Optional(Type.String({ description: "Unset for the key of the environment." })),
  scopes: Type.Array(Type.String()),
  tenantId: Type.Optional(Type.Number({ description: "Set for a key that is bound to a tenant." })),
  source: Type.Optional(Type.String()),
  via: Type.Enum(["session", "key", "token", "anonymous"] as const, { description: "What the caller has sent." }),
  expiresAt: Type.Optional(Type.Unsafe<Date>({ ...ReplyTime, description: "When it ends unless it is used again." })),
});

export interface SessionDeps extends ConsoleAccess {
  db: Db;
  keys: Pick<Keys, "find">;
}

export function sessionRoutes(http: Http, { db, keys, sessions, links }: SessionDeps): void {
  http.post(
    "/session",
    {
      config: { scope: PUBLIC },
      schema: {
        tags: ["admin"],
        summary: "Sign in to the console with a key or the code of a link; sets a cookie",
        body: SignIn,
        response: { 200: WhoReply, ...errors(400, 401, 403, 429) },
      },
    },
    async (request, reply) => {
      if (isCrossSite(request)) throw kernelError("CROSS_SITE");
      const { caller, token } = await signIn(request);
      reply.header("set-cookie", cookieWith(request, token));
      return who(caller, reply);
    },
  );

  http.get(
    "/session",
    {
      config: { scope: ANY_SCOPE },
      schema: { tags: ["admin"], summary: "Who the caller is", response: { 200: WhoReply } },
    },
    async ({ caller }, reply) => who(caller, reply),
  );

  http.delete(
    "/session",
    {
      config: { scope: PUBLIC }, // A session that has expired can be left, too.
      schema: {
        tags: ["admin"],
        summary: "Sign out of the console; clears the cookie",
        response: { 200: Type.Object({ ended: Type.Boolean() }), ...errors(403) },
      },
    },
    async (request, reply) => {
      const token = tokenIn(request);
      if (token === undefined) return { ended: false };
      refuseForeign(request);
      const ended = await db.tx((tx) => sessions.end(tx, token));
      reply.header("set-cookie", cookieWithout(request)).header("cache-control", "no-store");
      return { ended };
    },
  );

  http.post(
    "/session/links",
    {
      config: { scope: "admin", bodyOptional: true },
      schema: {
        tags: ["admin"],
        summary: "Make a link that signs in to the console once, with the key of this call",
        body: NoBody,
        response: {
          200: Type.Object({
            code: Type.String({ description: "The link is `/login#` and this code. It is shown only in this answer." }),
            expiresAt: ReplyTime,
          }),
          ...errors(400),
        },
      },
    },
    async (request, reply) => {
      if (!hasKey(request.caller)) {
        const because = "a link signs in with the key that makes it, and this call has none";
        throw kernelError("FORBIDDEN", { scope: "admin" }, { because });
      }
      reply.header("cache-control", "no-store");
      return db.tx(async (tx) => {
        const link = await links.create(tx, request.caller);
        await audit(tx, actorOf(request), "session.link", request.caller.name, { expiresAt: link.expiresAt });
        return link;
      });
    },
  );

  async function signIn(request: FastifyRequest<{ Body: { key?: string; code?: string } }>): Promise<NewSession> {
    const { key, code } = request.body;
    let session: NewSession | undefined;
    async function start(tx: Tx, caller: Caller, by: "key" | "link"): Promise<void> {
      const replaced = tokenIn(request);
      if (replaced !== undefined) await sessions.end(tx, replaced);
      session = await sessions.create(tx, caller);
      await audit(tx, { ...actorOf(request), caller: session.caller }, "session.start", caller.name, { by });
    }
    let reason: string;
    if (key !== undefined && code === undefined) {
      const caller = await keys.find(key, request.ip);
      if (caller) await db.tx((tx) => start(tx, caller, "key"));
      reason = "This key is not known, or it was revoked.";
    } else if (code !== undefined && key === undefined) {
      await links.redeem(code, request.ip, (tx, caller) => start(tx, caller, "link"));
      reason = "This link was used already, or it has expired. `millrace console` prints a new one.";
    } else {
      throw invalid("Send either a `key` or a `code`");
    }
    if (!session) throw kernelError("SIGN_IN_REFUSED", {}, { reason });
    return session;
  }
}

function who(caller: Caller, reply: FastifyReply) {
  reply.header("cache-control", "no-store");
  const { name, keyId, scopes, tenantId, source, session, expiresAtMs } = caller;
  const expiresAt = session?.expiresAt ?? (expiresAtMs === undefined ? undefined : new Date(expiresAtMs));
  return {
    name,
    ...(keyId === null ? {} : { keyId }),
    scopes: [...scopes],
    ...(tenantId === null ? {} : { tenantId: Number(tenantId) }),
    ...(source === null ? {} : { source }),
    via: viaOf(caller),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

function viaOf(caller: Caller): "session" | "key" | "token" | "anonymous" {
  if (caller.session) return "session";
  if (hasKey(caller)) return "key";
  return isAnonymous(caller) ? "anonymous" : "token";
}
