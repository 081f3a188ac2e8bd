/** Requests: the address, the headers, the body and the limits of an exchange. */
import { isIP } from "node:net";
import { proxyUrlOf } from "../../../kernel/net/outbound-url.ts";
import { isPublic } from "../../../kernel/net/public-address.ts";
import { HEADER_NAME, headerText } from "../render-values.ts";
import type { CheckInput, Finding } from "./check.ts";

/** Set by the transport; a second one would make two requests of one. */
const TRANSPORT_HEADERS: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export function* baseUrlIsSafe({ definition, allowPrivate, isDetail }: CheckInput): Iterable<Finding> {
  if (isDetail) return; // It has the same one.
  const at = (reason: string): Finding => ({ field: "baseUrl", reason, table: "reg_provenance" });
  const { baseUrl } = definition;
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol)) {
    yield at("It is not an https URL.");
    return;
  }
  const url = new URL(baseUrl);
  if (url.username !== "" || url.password !== "") {
    yield at("It has a user or a password. Declare a credential instead.");
  }
  if (url.search !== "" || url.hash !== "") yield at("It has a query or a fragment. Declare parameters instead.");
  if (isAllowed(url, allowPrivate)) return;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isPrivate = (isIP(host) !== 0 && !isPublic(host)) || /(^|\.)localhost$/i.test(host);
  const wrong = [...(url.protocol === "http:" ? ["not https"] : []), ...(isPrivate ? ["at a private address"] : [])];
  if (wrong.length === 0) return;
  yield at(
    `It is ${wrong.join(" and ")}. Allow it with \`${hostAndPort(url)}\` in \`MILLRACE_HARVEST_ALLOW_PRIVATE\`, or in \`harvest.allowPrivate\` of millrace.yaml, and restart every process of the server with it.`,
  );
}

export function* pathIsPath({ endpoint }: CheckInput): Iterable<Finding> {
  const at = (reason: string): Finding => ({ field: "path", reason, table: "reg_prov_endpoint_def" });
  const { path } = endpoint;
  if (path !== "" && !path.startsWith("/")) yield at("It begins with `/`, or is empty.");
  const literal = path.replaceAll(/\$\{[^}]*\}/g, "x");
  if (/[?#]/.test(literal)) yield at("It has a query or a fragment. Parameters stand in `http.query`.");
  if (/[^\x21-\x7e]/.test(literal)) yield at("It has a space or another character that must be encoded.");
  if (literal.split("/").some((segment) => segment === "." || segment === "..")) {
    yield at("A segment of it is `.` or `..`.");
  }
}

export function* headersAreLegal({ policy: { http, params } }: CheckInput): Iterable<Finding> {
  const seen = new Map<string, string>();
  const names = [
    ...Object.entries(http.headers ?? {}).map(([name, value]) => ({ name, field: `http.headers.${name}`, value })),
    ...params.flatMap(({ name, location }, index) =>
      location === "HEADER" ? [{ name, field: `params[${index}].name`, value: "" }] : [],
    ),
  ];
  for (const { name, field, value } of names) {
    const lower = name.toLowerCase();
    if (!HEADER_NAME.test(name)) yield { field, reason: "It is not the name of a header." };
    if (TRANSPORT_HEADERS.has(lower)) yield { field, reason: `The header \`${lower}\` is set by the transport.` };
    const other = seen.get(lower);
    if (other !== undefined) yield { field, reason: `It is the same header as \`${other}\`.` };
    seen.set(lower, name);
    yield* illegalValue(field, value);
  }
}

function* illegalValue(field: string, value: string): Iterable<Finding> {
  try {
    // Expressions are checked when they are rendered.
    headerText(value.replaceAll(/\$\{[^}]*\}/g, ""), field);
  } catch {
    yield { field, reason: "Its value has a character that a header cannot have, such as a line break." };
  }
}

export function* bodyFitsMethod({ endpoint, policy: { http, auth, params } }: CheckInput): Iterable<Finding> {
  const { method } = endpoint;
  if (method === "HEAD") {
    yield { field: "method", reason: "HEAD answers no records.", table: "reg_prov_endpoint_def" };
  }
  if (http.form !== undefined && http.json !== undefined) {
    yield { field: "http.json", reason: "A request has one body: `http.form` or `http.json`." };
  }
  const isObject = typeof http.json === "object" && http.json !== null && !Array.isArray(http.json);
  const isExtended = auth.location === "BODY" || params.some(({ location }) => location === "BODY");
  if (http.json !== undefined && !isObject && isExtended) {
    yield { field: "http.json", reason: "It is not an object, so a credential or a parameter has no place in it." };
  }
  if (method !== "POST") {
    if (http.form !== undefined) yield { field: "http.form", reason: `A ${method} request has no body.` };
    if (http.json !== undefined) yield { field: "http.json", reason: `A ${method} request has no body.` };
    for (const [index, { location }] of params.entries()) {
      if (location === "BODY") yield { field: `params[${index}].location`, reason: `A ${method} request has no body.` };
    }
  }
}

export function* redirectsAreForReads({ endpoint, policy: { http } }: CheckInput): Iterable<Finding> {
  if ((http.redirects ?? 0) > 0 && endpoint.method === "POST") {
    yield { field: "http.redirects", reason: "Redirects are followed for GET and HEAD only, and this is POST." };
  }
}

export function* proxyIsUrl({ policy: { http } }: CheckInput): Iterable<Finding> {
  const { proxy } = http;
  if (proxy === undefined) return;
  const url = proxyUrlOf(proxy);
  if (!url) {
    yield { field: "http.proxy", reason: "It is not the URL of a proxy. Write it as http://host:port." };
  } else if (url.username !== "" || url.password !== "") {
    yield { field: "http.proxy", reason: "It has a user or a password, which would be stored in every snapshot." };
  }
}

function hostAndPort(url: URL): string {
  return `${url.hostname}:${url.port || (url.protocol === "https:" ? "443" : "80")}`;
}

function isAllowed(url: URL, allowPrivate: readonly string[]): boolean {
  return allowPrivate.some((allowed) => allowed.toLowerCase() === hostAndPort(url));
}
