/** Finds out who makes a request, by a key, a signed token or the session of the console, and whether its scopes allow it. */
import type { FastifyRequest } from "fastify";
import type { ConsoleSessions } from "../auth/console-sessions.ts";
import type { Keys } from "../auth/keys.ts";
import { type Caller, type ScopeTable, whyNot } from "../auth/scopes.ts";
import { kernelError } from "../errors.ts";
import { isCrossSite, isReading, refuseForeign } from "./browser.ts";
import { tokenIn } from "./session-cookie.ts";

/** The scope of a route that is open to everyone. */
export const PUBLIC = "public";
/** The scope of a route for every caller that has some scope. */
export const ANY_SCOPE = "any";

export interface Assertions {
  /** The caller that the token proves. Throws an `ApiError` if it is not valid or cannot be verified now. */
  verify(token: string, address: string): Promise<Caller>;
}

export interface AuthenticateOptions {
  keys: Pick<Keys, "find">;
  sessions: Pick<ConsoleSessions, "find">;
  /** The scopes that routes may need. */
  scopes: ScopeTable;
  anonymousScopes: readonly string[];
  /** Authenticates callers with a signed token (JWT) instead of a key. Unset: tokens are refused. */
  assertions?: Assertions | undefined;
}

const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const ANONYMOUS: Caller = {
  name: "anonymous",
  keyId: null,
  scopes: [],
  tenantId: null,
  source: null,
  rateLimitPerMinute: null,
};

export function createAuthenticate(options: AuthenticateOptions): (request: FastifyRequest) => Promise<Caller> {
  const { keys, sessions, scopes } = options;
  const anonymous: Caller = { ...ANONYMOUS, scopes: options.anonymousScopes };

  function because(caller: Caller, scope: string): string | undefined {
    if (scope === ANY_SCOPE) return caller.scopes.length > 0 ? undefined : "it has no scope";
    return whyNot(caller, scope, scopes);
  }

  async function callerOf(request: FastifyRequest): Promise<Caller | undefined> {
    const { authorization } = request.headers;
    if (authorization !== undefined) return withKey(authorization, request.ip);
    const token = tokenIn(request);
    return token === undefined ? undefined : withToken(request, token);
  }

  async function withKey(authorization: string, address: string): Promise<Caller> {
    const key = /^Bearer (\S+)$/i.exec(authorization)?.[1];
    if (key === undefined) throw kernelError("UNAUTHENTICATED", {}, { reason: "The header holds no bearer key." });
    // Keys first: a key from the environment may look like a token, and looking up a token among the keys is cheap.
    let caller = await keys.find(key, address);
    if (!caller && options.assertions && JWT.test(key)) caller = await options.assertions.verify(key, address);
    if (!caller) throw kernelError("UNAUTHENTICATED", {}, { reason: "This key is not known, or it was revoked." });
    return caller;
  }

  /** Browsers send the cookie by themselves, so it counts only if this server's own page makes the call. */
  async function withToken(request: FastifyRequest, token: string): Promise<Caller> {
    refuseForeign(request);
    const caller = await sessions.find(token);
    if (!caller) throw kernelError("SESSION_EXPIRED");
    return caller;
  }

  return async (request) => {
    const scope = request.routeOptions.config.scope ?? PUBLIC;
    if (scope === PUBLIC) return anonymous; // Health and metrics must answer while the database is unavailable.
    const caller = await callerOf(request);
    const refused = because(caller ?? anonymous, scope);
    if (caller) {
      if (refused !== undefined) throw kernelError("FORBIDDEN", { scope }, { because: refused });
      return caller;
    }
    if (refused !== undefined) throw kernelError("UNAUTHENTICATED", {}, { reason: "This call needs a key." });
    if (!isReading(request) && isCrossSite(request)) throw kernelError("CROSS_SITE");
    return anonymous;
  };
}

/** A stored key may have the same name. */
export function isAnonymous({ name, keyId }: Caller): boolean {
  return keyId === null && name === ANONYMOUS.name;
}
