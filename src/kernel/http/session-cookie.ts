/**
 * The cookie with the token of a session. No script reads it, and browsers send it only from pages of this server. Over TLS it
 * is also bound to this host and never sent without TLS.
 */
import type { FastifyRequest } from "fastify";
import { SESSION_SECONDS_MAX } from "../auth/console-sessions.ts";

const NAME = "millrace";
/** Browsers accept this prefix only from the host itself, over TLS. */
const SECURE_NAME = `__Host-${NAME}`;

export function tokenIn(request: FastifyRequest): string | undefined {
  const start = `${nameFor(request)}=`;
  const pairs = request.headers.cookie?.split(";").map((pair) => pair.trim());
  return pairs?.find((pair) => pair.startsWith(start))?.slice(start.length);
}

export function cookieWith(request: FastifyRequest, token: string): string {
  return cookie(request, token, SESSION_SECONDS_MAX);
}

/** Makes the browser delete it. */
export function cookieWithout(request: FastifyRequest): string {
  return cookie(request, "", 0);
}

function cookie(request: FastifyRequest, value: string, maxAgeSeconds: number): string {
  const secure = isSecure(request) ? "; Secure" : "";
  return `${nameFor(request)}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure}`;
}

function nameFor(request: FastifyRequest): string {
  return isSecure(request) ? SECURE_NAME : NAME;
}

/** By its own connection or, behind a trusted proxy, by what the proxy says. */
function isSecure({ protocol }: FastifyRequest): boolean {
  return protocol === "https";
}
