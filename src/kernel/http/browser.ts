/**
 * What protects people who use Millrace in a browser: headers that keep its pages and answers from being framed, sniffed or
 * scripted, and the refusal of calls that another site's page makes in the name of a trusted network.
 */
import type { FastifyRequest } from "fastify";
import { kernelError } from "../errors.ts";

const COMMON = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
} as const;

/** A policy that allows nothing but these sources. */
const policy = (...sources: string[]) =>
  ["default-src 'none'", ...sources, "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"].join("; ");

/** For answers without a page: a browser that shows one loads and runs nothing. */
export const HEADERS = { ...COMMON, "content-security-policy": policy() } as const;

/** For the front page, whose style is inside it. */
export const FRONT_PAGE_POLICY = policy("style-src 'unsafe-inline'");

/** For the page of the console, whose libraries insert styles with this nonce. */
export function consolePolicy(nonce: string): string {
  return policy(
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
  );
}

/** For its files: a script that runs as a worker has the policy of its own reply. */
export const ASSET_POLICY = policy("script-src 'self'", "connect-src 'self'");

/** For the reference, where keys are typed. Its library sets styles inline and has images in its style sheet. */
export const REFERENCE_HEADERS = {
  ...COMMON,
  "content-security-policy": policy(
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
  ),
} as const;

/**
 * Whether a page of another site makes this call. Such a page can send a POST without a body from inside the network of the
 * person who looks at it. A call that is not made by a browser has neither header.
 */
export function isCrossSite({ headers, host }: FastifyRequest): boolean {
  const { "sec-fetch-site": site, origin } = headers;
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  // Browsers send the one above only to addresses that they take for secure.
  return origin !== undefined && !isOwn(origin, host);
}

/** Whether a browser says that a page of this server makes this call. */
function isOwnPage({ headers, host }: FastifyRequest): boolean {
  const { "sec-fetch-site": site, origin } = headers;
  return site === undefined ? origin !== undefined && isOwn(origin, host) : site === "same-origin";
}

/** A proxy may name the port in `Host` where the origin leaves it out, as the default of its protocol. */
function isOwn(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: own } = new URL(origin);
  const here = `${protocol}//${host}`;
  return URL.canParse(here) && new URL(here).host === own;
}

/** The header of calls that change something, by the page of the console: no form of another site can send it. */
const CONSOLE_HEADER = "x-millrace-console";

/**
 * Refuses a call that another site's page may have made with the cookie of a person who is signed in: a read that does not
 * come from here, and a change unless the page of the console says that it makes it.
 */
export function refuseForeign(request: FastifyRequest): void {
  const isForeign = isReading(request)
    ? isCrossSite(request)
    : !isOwnPage(request) || request.headers[CONSOLE_HEADER] !== "1";
  if (!isForeign) return;
  const unless = ", and the console sends `X-Millrace-Console: 1` with its own `Origin`";
  throw kernelError("CROSS_SITE", {}, isReading(request) ? {} : { unless });
}

/** Whether the method changes nothing. */
export function isReading({ method }: FastifyRequest): boolean {
  return method === "GET" || method === "HEAD";
}
