import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compiledOf, draft } from "./definition.fixture.ts";
import { compileRequest, type RequestContext } from "./render.ts";
import { RenderError } from "./render-values.ts";

const list = (changes: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(changes).map(([path, value]) => [`endpoints.list.${path}`, value]));

const CONTEXT: RequestContext = {
  window: { from: "2026-08-20", until: "2026-08-20", to: "2026-08-21" },
  page: { size: 50, offset: 0 },
  params: {},
  plan: { id: "plan-1", from: "2026-08-20T00:00:00Z", to: "2026-08-21T00:00:00Z" },
  now: "2026-08-22T10:11:12Z",
  isFirst: true,
};

function rendered(changes: Record<string, unknown>, context: Partial<RequestContext> = {}, endpointName = "list") {
  const { snapshot } = compiledOf(draft(changes), { endpointName });
  return compileRequest(snapshot.spec)({ ...CONTEXT, ...context });
}
const queryOf = (changes: Record<string, unknown>, context?: Partial<RequestContext>) =>
  new URL(rendered(changes, context).url).search;
const onlyQuery = (query: Record<string, string>) =>
  list({
    http: { query },
    window: undefined,
    enumerator: "NoCount",
    "response.totalPath": undefined,
    pagination: { type: "URL", tokenClass: "REPEATABLE", nextUrlPath: "$.next" },
  });

describe("a request", () => {
  test("has its templates filled in, in the order of their names", () => {
    expect(rendered({})).toEqual({
      method: "GET",
      url: "https://api.example.org/v1/books?from=2026-08-20&limit=50&offset=0&until=2026-08-20",
      headers: { accept: "application/json" },
      secrets: [],
    });
  });

  test("is the same bytes from a snapshot whose keys a store has reordered", () => {
    const { snapshot } = compiledOf(draft());
    const { query } = snapshot.spec.http;
    const reversed = Object.fromEntries(Object.entries(query).toReversed());
    const spec = { ...snapshot.spec, http: { ...snapshot.spec.http, query: reversed } };
    expect(compileRequest(spec)(CONTEXT)).toEqual(compileRequest(snapshot.spec)(CONTEXT));
  });

  test("encodes what it inserts into the query", () => {
    const query = { a: "${params.genre}", "b c": "ü&=" };
    expect(
      queryOf({ ...onlyQuery(query), ...list({ params: [{ name: "genre" }] }) }, { params: { genre: "x&y=z +" } }),
    ).toBe("?a=x%26y%3Dz%20%2B&b%20c=%C3%BC%26%3D");
  });

  test("encodes what it inserts into the path, and nothing else of it", () => {
    const path = { path: "/books/${params.genre}/a:b", params: [{ name: "genre", location: "PATH" }] };
    expect(rendered(list(path), { params: { genre: "a/b c?" } }).url).toContain("/v1/books/a%2Fb%20c%3F/a:b?");
  });

  test.each(["..", ".", "%2e%2E"])("does not climb by %s in the path", (genre) => {
    const path = { path: "/books/${params.genre}", params: [{ name: "genre", location: "PATH" }] };
    const render = () => rendered(list(path), { params: { genre } });
    if (genre.startsWith("%")) expect(render().url).toContain("%252e%252E");
    else expect(render).toThrow("A segment of the path is `.` or `..`.");
  });

  test("uses the plan's recorded time as now", () => {
    const query = { a: '${formatDateTime(now, "yyyyMMdd")}', b: "${now}" };
    expect(queryOf(onlyQuery(query))).toBe("?a=20260822&b=2026-08-22T10%3A11%3A12Z");
  });

  test("repeats a parameter that is a list", () => {
    expect(queryOf(onlyQuery({ a: "${['x', 'y', 'z'].filter(v, v != 'y')}" }))).toBe("?a=x&a=z");
  });

  test("writes numbers and truths as text", () => {
    expect(queryOf(onlyQuery({ a: "${1 + 2}", b: "${true}", c: "${page.size}", d: "${0.5}" }))).toBe(
      "?a=3&b=true&c=50&d=0.5",
    );
  });

  test("refuses an object as a value", () => {
    expect(() => queryOf(onlyQuery({ a: "${{'x': 1}}" }))).toThrow("`http.query.a`: Its value is an object");
  });

  test("has no longer a URL than servers take", () => {
    const params = { params: [{ name: "genre", pattern: "a+" }] };
    expect(() => rendered(list(params), { params: { genre: "a".repeat(20_000) } })).toThrow("16384 is the limit");
  });
});

describe("a parameter without a value", () => {
  const nothing = { ...onlyQuery({ a: "${params.genre}", b: "1" }), ...list({ params: [{ name: "genre" }] }) };

  test("is left out", () => {
    expect(queryOf(nothing)).toBe("?b=1");
    expect(rendered({ ...nothing, ...list({ "http.headers.x-genre": "${params.genre}" }) }).headers).toEqual({});
  });

  test("is sent empty where the definition says so", () => {
    expect(queryOf({ ...nothing, ...list({ "expr.nullPolicy": "empty" }) })).toBe("?a=&b=1");
  });

  test("is refused inside other text, which would ask for something else", () => {
    const changes = {
      ...onlyQuery({ filter: "genre:${params.genre},year:2026" }),
      ...list({ params: [{ name: "genre" }] }),
    };
    expect(() => queryOf(changes)).toThrow(/`http.query.filter`: `params.genre` is null/);
  });

  test("is an error where it is required", () => {
    const { snapshot } = compiledOf(draft(list({ params: [{ name: "genre", required: true }] })), {
      trigger: { params: { genre: "crime" } },
    });
    const render = () => compileRequest(snapshot.spec)(CONTEXT);
    expect(render).toThrow(RenderError);
    expect(render).toThrow("`params.genre`: It is required and has no value.");
  });
});

describe("a parameter of the trigger", () => {
  test.each([
    ["QUERY", (genre: string) => ({ url: `genre=${genre}` })],
    ["HEADER", (genre: string) => ({ headers: { accept: "application/json", genre } })],
  ] as const)("goes to the %s", (location, expected) => {
    const request = rendered(list({ params: [{ name: "genre", location }] }), { params: { genre: "crime" } });
    const wanted = expected("crime");
    if ("url" in wanted) expect(request.url).toContain(wanted.url);
    else expect(request).toMatchObject(wanted);
  });

  test("goes to the form or the JSON of the body", () => {
    const params = { method: "POST", params: [{ name: "genre", location: "BODY" }] };
    const given = { params: { genre: "a b&c" } };
    expect(rendered(list({ ...params, "http.form": { z: "1" } }), given)).toMatchObject({
      body: "genre=a+b%26c&z=1",
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
    expect(rendered(list(params), given)).toMatchObject({ body: "genre=a+b%26c" });
    expect(rendered(list({ ...params, "http.json": { size: "${page.size}", no: "${null}" } }), given)).toMatchObject({
      body: '{"size":50,"genre":"a b&c"}',
      headers: { "content-type": "application/json" },
    });
  });

  test("overrides a template of the same name", () => {
    expect(queryOf(list({ params: [{ name: "limit" }] }), { params: { limit: 7 } })).toContain("limit=7");
  });

  test("is not sent a second time where a template reads it", () => {
    expect(queryOf(list({ "http.query.g": "${params.genre}" }), { params: { genre: "crime" } })).not.toContain(
      "genre=",
    );
  });

  test("may be computed", () => {
    const params = [{ name: "genre", expr: 'coalesce(params.genre, "all").upperAscii()', pattern: "[A-Z]+" }];
    expect(queryOf(list({ params }))).toContain("genre=ALL");
    expect(queryOf(list({ params }), { params: { genre: "crime" } })).toContain("genre=CRIME");
    expect(() => queryOf(list({ params }), { params: { genre: "1" } })).toThrow("does not match the pattern");
  });

  test.each(["crime and punishment", "crime\n", "Crime", "x crime", ""])(
    "that is %j matches no pattern of words",
    (genre) => {
      expect(() => rendered({}, { params: { genre } })).toThrow("`params.genre`: Its value does not match");
    },
  );

  test("is checked again when it changes, not only the first time", () => {
    const render = compileRequest(compiledOf(draft()).snapshot.spec);
    render({ ...CONTEXT, params: { genre: "crime" } });
    expect(() => render({ ...CONTEXT, params: { genre: "CRIME" } })).toThrow("does not match");
  });

  test("cannot keep a pattern busy for ever", () => {
    const params = [{ name: "genre", pattern: "a*a*a*a*a*a*a*a*b" }];
    expect(() => rendered(list({ params }), { params: { genre: "a".repeat(4_000) } })).toThrow("takes too long");
  });

  test("cannot begin another header", () => {
    const params = [{ name: "genre", location: "HEADER" }];
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (genre) => {
        let headers: Record<string, string>;
        try {
          ({ headers } = rendered(list({ params }), { params: { genre } }));
        } catch (error) {
          expect(error).toBeInstanceOf(RenderError);
          return;
        }
        expect(headers["genre"] ?? "").not.toMatch(/[\r\n\0]/);
      }),
      { numRuns: 50 },
    );
  });
});

describe("the pages after the first", () => {
  const token = {
    "pagination.type": "TOKEN",
    "pagination.tokenClass": "REPEATABLE",
    "pagination.nextTokenPath": "$.next",
    "http.query.offset": undefined,
  };

  test("send `nextQuery` instead, without the parameters of the first", () => {
    const changes = list({ ...token, "pagination.nextQuery": { token: "${page.token}" } });
    const params = { genre: "crime" };
    expect(queryOf(changes, { params })).toBe("?from=2026-08-20&genre=crime&limit=50&until=2026-08-20");
    expect(queryOf(changes, { params, isFirst: false, page: { token: "a%2Fb" } })).toBe("?token=a%252Fb");
  });

  const url = list({
    "pagination.type": "URL",
    "pagination.tokenClass": "REPEATABLE",
    "pagination.nextUrlPath": "$.next",
    "http.query.offset": undefined,
    "auth.type": "API_KEY",
    "auth.location": "QUERY",
    "auth.name": "key",
    "auth.credential": "key",
  });
  const next = (page: string) =>
    rendered(url, { isFirst: false, page: { url: page }, credential: { value: "s3", version: 1 } });

  test("ask for the URL that the source gave, with the credential", () => {
    expect(next("https://api.example.org/other?x=%20a&page=2").url).toBe(
      "https://api.example.org/other?x=%20a&page=2&key=s3",
    );
    expect(next("/v1/books?page=2#top").url).toBe("https://api.example.org/v1/books?page=2&key=s3");
    expect(next("https://api.example.org/v1?key=old&page=2").url).toBe("https://api.example.org/v1?page=2&key=s3");
  });

  test.each([
    "https://evil.example.org/",
    "http://api.example.org/v1",
    "https://api.example.org:8443/",
    "//evil.example.org/x",
  ])("do not follow a URL to another origin: %s", (page) => {
    expect(() => next(page)).toThrow("`page.url`: It leads to another origin");
  });

  test("need a URL", () => {
    expect(() => rendered(url, { isFirst: false, page: {}, credential: { value: "s3", version: 1 } })).toThrow(
      "It is not a URL.",
    );
  });
});

describe("a probe", () => {
  test("replaces parameters of the first page", () => {
    const probe = { query: { limit: "0", count: "yes" }, totalPath: "$.total", format: "JSON" };
    const changes = list({ "window.probe": probe });
    expect(queryOf(changes, { isProbe: true })).toBe("?count=yes&from=2026-08-20&limit=0&offset=0&until=2026-08-20");
    expect(queryOf(changes)).toContain("limit=50");
  });
});

describe("a credential", () => {
  const auth = (more: Record<string, unknown>) =>
    list({ auth: { type: "API_KEY", location: "HEADER", name: "X-Key", credential: "key", ...more } });
  const credential = { value: "s3cret", version: 2 };

  test("goes to a header, the query or the body, and is told to be secret", () => {
    expect(rendered(auth({}), { credential })).toMatchObject({ headers: { "x-key": "s3cret" }, secrets: ["s3cret"] });
    expect(rendered(auth({ location: "QUERY" }), { credential }).url).toContain("&X-Key=s3cret");
    const post = { ...auth({ location: "BODY" }), ...list({ method: "POST" }) };
    expect(rendered(post, { credential })).toMatchObject({ body: "X-Key=s3cret", secrets: ["s3cret"] });
    expect(rendered({ ...post, ...list({ "http.json": { a: 1 } }) }, { credential }).body).toBe(
      '{"a":1,"X-Key":"s3cret"}',
    );
  });

  test("of the type BEARER has its own header", () => {
    expect(rendered(list({ auth: { type: "BEARER", credential: "key" } }), { credential }).headers).toMatchObject({
      authorization: "Bearer s3cret",
    });
  });

  test("without a value makes a request anonymous only where that is allowed", () => {
    expect(rendered(auth({ required: false }))).toMatchObject({ headers: { accept: "application/json" }, secrets: [] });
    expect(() => rendered(auth({}))).toThrow("`credentials.key`: It has no value");
  });

  test("with a line break is refused, and not shown", () => {
    const render = () => rendered(auth({}), { credential: { value: "s3cret\r\nx: y", version: 1 } });
    expect(render).toThrow("`credentials.key`: Its value has a character that a header cannot have");
    expect(render).not.toThrow("s3cret");
  });
});

describe("a request for details", () => {
  test("asks for its ids", () => {
    const { snapshot } = compiledOf(draft(), { endpointName: "ids" });
    const request = compileRequest(snapshot.detail!)({ ...CONTEXT, page: { ids: ["1", "2&3"] } });
    expect(request).toEqual({
      method: "POST",
      url: "https://api.example.org/v1/details",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "id=1%2C2%263",
      secrets: [],
    });
  });
});
