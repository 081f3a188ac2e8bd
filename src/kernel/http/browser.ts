/**
 * What protects people who use Millrace in a browser: headers that keep its pages and answers from being framed, sniffed or
 * scripted, and the refusal of calls that another site's page makes in the name of a trusted network.
 */
import type { FastifyRequest } from "fastify";

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
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host.toLowerCase();
}
