/**
 * Requests of an endpoint: its templates, compiled once, and rendered for each page. The query and form have the order of their
 * names, so equal requests are equal bytes. A parameter that a template reads is not sent a second time.
 */
import { ExpressionError } from "../../kernel/expressions/cel.ts";
import type { Template } from "../../kernel/expressions/template.ts";
import type { ParamValues } from "../definition/definition.ts";
import type { Fragments } from "../slice/fragments.ts";
import { type Authorize, type Credential, compileAuth } from "./render-auth.ts";
import { compileParams } from "./render-params.ts";
import { headerText, RenderError, textsOf } from "./render-values.ts";
import { dimensionsOf, type EndpointSpec, type HttpSpec } from "./snapshot.ts";
import { compileRequestTemplate, paramsRead, type RequestTemplate, templatesOf } from "./templates.ts";

export interface RequestContext {
  /** The slice's bounds, as the source writes them. */
  window?: { from: string; until: string; to: string };
  page: {
    size?: number;
    number?: number | null;
    offset?: number | null;
    token?: string | null;
    /** Requested as it is, for pages after the first. */
    url?: string | null;
    ids?: readonly string[];
  };
  /** Of the part of the slice; unset for all of it. */
  parts?: Fragments;
  /** The snapshot's. */
  params: ParamValues;
  plan: { id: string; from: string | null; to: string | null };
  /** The plan's recorded time, in RFC 3339. */
  now: string;
  isFirst: boolean;
  /** Counts the records of the slice instead: `window.probe.query` replaces parameters of the first page. */
  isProbe?: boolean;
  /** Its current value. Absent while there is none. */
  credential?: Credential;
}

export interface RenderedRequest {
  method: HttpSpec["method"];
  url: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  body?: string;
  /** What must not be stored or logged. */
  secrets: string[];
}

/** Longer ones are refused by most servers, with answers that say nothing. */
const URL_LENGTH_MAX = 16_384;

type Values = Readonly<Record<string, unknown>>;
interface Named {
  name: string;
  field: string;
  value: (values: Values) => unknown;
}

/** For a spec that has been compiled, so its templates have too. Rendering throws a RenderError. */
export function compileRequest(spec: EndpointSpec): (context: RequestContext) => RenderedRequest {
  const { http, pagination } = spec;
  const compiled = templatesOf(spec).map((one) => ({ ...one, template: templateOf(one) }));
  const of = (part: RequestTemplate["part"]) => compiled.filter((one) => one.part === part).map(named);
  const names = spec.params.map(({ name }) => name);
  const read = paramsRead(
    compiled.map(({ template }) => template),
    names,
  );
  const sent = (location: string): Named[] =>
    spec.params
      .filter((param) => param.location === location && !read.has(param.name))
      .map(({ name }) => ({
        name: location === "HEADER" ? name.toLowerCase() : name,
        field: `params.${name}`,
        value: ({ params }) => (params as ParamValues)[name],
      }));

  const paramsOf = compileParams(spec.params);
  const path = of("path")[0]!;
  const headers = over(of("headers"), sent("HEADER"));
  const firstQuery = over(of("query"), sent("QUERY"));
  const nextQuery = pagination.nextQuery ? of("nextQuery") : firstQuery;
  const probeQuery = over(firstQuery, of("probe"));
  const bodyParams = sent("BODY");
  const form =
    http.form || (bodyParams.length > 0 && http.json === undefined) ? over(of("form"), bodyParams) : undefined;
  const json = of("json")[0];
  const keepsNull = spec.expr.nullPolicy === "empty";
  const authorize = compileAuth(spec.auth);
  const baseUrl = http.baseUrl.replace(/\/+$/, "");
  const { origin } = new URL(http.baseUrl);
  const none = { window: null, parts: noParts(spec) };

  return (context) => {
    const { page, isFirst, isProbe = false, credential } = context;
    const ids = page.ids ?? [];
    const outer = { ...none, ...context, page: { ...NO_PAGE, ...page, ids }, ids };
    const values = { ...outer, params: paramsOf(context.params, outer) };
    const request = new RequestBuilder();

    for (const { name, field, value } of headers) {
      const text = textsOf(evaluated(field, value, values), field, keepsNull).join(", ");
      if (text !== "" || keepsNull) request.headers[name] = headerText(text, field);
    }
    if (pagination.type === "URL" && !isFirst && !isProbe) {
      request.address = sameOrigin(page.url, origin, baseUrl);
    } else {
      request.address = baseUrl + pathText(path, values);
      const query = isProbe ? probeQuery : isFirst ? firstQuery : nextQuery;
      request.query = pairs(query, values, keepsNull);
    }
    if (form) request.form = pairs(form, values, keepsNull);
    if (json) {
      const rendered = evaluated(json.field, json.value, values);
      request.json = jsonBody(keepsNull ? rendered : withoutNull(rendered), bodyParams, values);
    }
    const secrets = authorize(request, credential);
    return { method: http.method, ...request.rendered(), secrets };
  };
}

/** Of a request for the whole slice. */
function noParts({ slicing }: EndpointSpec): Fragments {
  return Object.fromEntries(dimensionsOf(slicing).map(({ name }) => [name, null]));
}

const NO_PAGE = { size: null, number: null, offset: null, token: null, url: null };

/** The parts of a request, until the credential is in its place. */
class RequestBuilder implements Authorize {
  headers: Record<string, string> = {};
  address = "";
  query: [string, string][] = [];
  form: [string, string][] | undefined;
  json: unknown;

  rendered(): Pick<RenderedRequest, "url" | "headers" | "body"> {
    const url = withQuery(this.address, this.query);
    if (url.length > URL_LENGTH_MAX) {
      throw new RenderError("url", `It has ${url.length} characters; ${URL_LENGTH_MAX} is the limit.`);
    }
    if (this.form) {
      const body = new URLSearchParams(this.form).toString();
      return { url, headers: { "content-type": "application/x-www-form-urlencoded", ...this.headers }, body };
    }
    if (this.json === undefined) return { url, headers: this.headers };
    return { url, headers: { "content-type": "application/json", ...this.headers }, body: JSON.stringify(this.json) };
  }
}

function templateOf(one: RequestTemplate): Template {
  const compiled = compileRequestTemplate(one);
  if ("template" in compiled) return compiled.template;
  throw new Error(`${one.field}: ${compiled.problems[0]?.message}`);
}

function named({ field, part, name, template }: RequestTemplate & { template: Template }): Named {
  const constant = template.isConstant ? template.render({}) : undefined;
  return {
    name: part === "headers" ? name.toLowerCase() : name,
    field,
    value: template.isConstant && part !== "json" ? () => constant : (values) => template.render(values),
  };
}

/** Those of `upper` replace those of the same name in `lower`. */
function over(lower: readonly Named[], upper: readonly Named[]): Named[] {
  const all = new Map([...lower, ...upper].map((one) => [one.name, one]));
  return [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function evaluated(field: string, value: Named["value"], values: Values): unknown {
  try {
    return value(values);
  } catch (error) {
    if (error instanceof ExpressionError) throw new RenderError(field, error.message);
    throw error;
  }
}

/** A list is repeated; what is null is left out, or empty. */
function pairs(entries: readonly Named[], values: Values, keepsNull: boolean): [string, string][] {
  return entries.flatMap(({ name, field, value }) =>
    textsOf(evaluated(field, value, values), field, keepsNull).map((text): [string, string] => [name, text]),
  );
}

function pathText({ field, value }: Named, values: Values): string {
  const rendered = evaluated(field, value, values);
  if (typeof rendered !== "string") throw new RenderError(field, "It is not text.");
  const isClimbing = rendered.split("/").some((segment) => /^(\.|%2e){1,2}$/i.test(segment));
  if (isClimbing) throw new RenderError(field, "A segment of the path is `.` or `..`.");
  return rendered;
}

function withQuery(address: string, query: readonly [string, string][]): string {
  if (query.length === 0) return address;
  const text = query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
  return `${address}${address.includes("?") ? "&" : "?"}${text}`;
}

function sameOrigin(url: string | null | undefined, origin: string, baseUrl: string): string {
  if (typeof url !== "string" || !URL.canParse(url, `${baseUrl}/`)) {
    throw new RenderError("page.url", "It is not a URL.");
  }
  const resolved = new URL(url, `${baseUrl}/`);
  if (resolved.origin !== origin) throw new RenderError("page.url", `It leads to another origin than ${origin}.`);
  resolved.hash = "";
  return resolved.href;
}

function jsonBody(rendered: unknown, params: readonly Named[], values: Values): unknown {
  if (params.length === 0) return rendered;
  const own = params.map(({ name, value }) => [name, value(values)] as const).filter(([, value]) => value !== null);
  return { ...(rendered as object), ...Object.fromEntries(own) };
}

function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(kept.map(([key, member]) => [key, withoutNull(member)]));
}
