/** The templates of a request: where they stand in a policy, and what they may use. */
import { compileTemplate, type Template } from "../../kernel/expressions/template.ts";
import { REQUEST_FUNCTIONS } from "./functions.ts";

/** `ids` are those that a request of a detail endpoint asks for; `parts` are the fragments of a part of a slice. */
export const REQUEST_VARIABLES = ["window", "page", "params", "plan", "ids", "parts", "now"] as const;

/** The members of those variables that have a fixed set of them. */
export const REQUEST_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  window: ["from", "until", "to"],
  page: ["size", "number", "offset", "token", "url", "ids"],
  plan: ["id", "from", "to"],
};

/** What a policy or a compiled spec has of a request. */
export interface RequestTexts {
  http: {
    path: string;
    headers?: Readonly<Record<string, string>>;
    query?: Readonly<Record<string, string>>;
    form?: Readonly<Record<string, string>>;
    json?: unknown;
  };
  pagination?: { nextQuery?: Readonly<Record<string, string>> };
  window?: { probe?: { query?: Readonly<Record<string, string>> } };
}

export interface RequestTemplate {
  /** The path in the policy: `http.query.rows`. */
  field: string;
  part: "path" | "headers" | "query" | "form" | "json" | "nextQuery" | "probe";
  /** Of the header, parameter or form field; empty for `path` and `json`. */
  name: string;
  value: unknown;
}

/** In a fixed order, whatever the order of the keys. */
export function templatesOf({ http, pagination, window }: RequestTexts): RequestTemplate[] {
  return [
    { field: "http.path", part: "path", name: "", value: http.path },
    ...entriesOf("headers", "http.headers", http.headers),
    ...entriesOf("query", "http.query", http.query),
    ...entriesOf("form", "http.form", http.form),
    ...(http.json === undefined ? [] : [{ field: "http.json", part: "json" as const, name: "", value: http.json }]),
    ...entriesOf("nextQuery", "pagination.nextQuery", pagination?.nextQuery),
    ...entriesOf("probe", "window.probe.query", window?.probe?.query),
  ];
}

export function compileRequestTemplate(
  { part, value }: Pick<RequestTemplate, "part" | "value">,
  variables: readonly string[] = REQUEST_VARIABLES,
): ReturnType<typeof compileTemplate> {
  const encode = part === "path" ? { encode: encodeURIComponent } : {};
  return compileTemplate(value, variables, { functions: REQUEST_FUNCTIONS, ...encode });
}

/** The parameters that templates read, so that they need not be sent by themselves. All of them if that is known only later. */
export function paramsRead(templates: readonly Template[], names: readonly string[]): ReadonlySet<string> {
  const read = new Set<string>();
  for (const template of templates) {
    for (const name of template.membersOf("params") ?? names) read.add(name);
  }
  return read;
}

function entriesOf(
  part: RequestTemplate["part"],
  field: string,
  texts: Readonly<Record<string, string>> = {},
): RequestTemplate[] {
  const names = Object.keys(texts).sort();
  return names.map((name) => ({ field: `${field}.${name}`, part, name, value: texts[name] }));
}
