/** The compiler: problems and their places, warnings, and snapshots. The problems of each check are in checks/. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { key, list, testBad, token, twoPhase } from "./bad-definition.fixture.ts";
import { CHECKS, WARNINGS } from "./checks/index.ts";
import { COMPILER_VERSION, type CompileInput } from "./compile.ts";
import { compiledOf, draft, problemsOf } from "./definition.fixture.ts";

testBad([
  {
    check: "trigger",
    change: {},
    input: { trigger: { window: { from: "2026-08-21", to: "2026-08-20" } } },
    table: "trigger",
    field: "window",
    reason: "It ends before it starts, or is empty.",
  },
  {
    check: "trigger",
    change: {},
    input: { trigger: { window: { from: "yesterday", to: "2026-08-20" } } },
    table: "trigger",
    field: "window.from",
    reason: "It is not a time, such as 2026-08-20 or 2026-08-20T00:00:00Z.",
  },
  {
    check: "trigger",
    change: {},
    input: { trigger: { params: { gendre: "crime" } } },
    table: "trigger",
    field: "params.gendre",
    reason: "The endpoint has no parameter `gendre`. Did you mean `genre`?",
  },
  {
    check: "trigger",
    change: list({ params: [{ name: "genre", required: true }] }),
    table: "trigger",
    field: "params.genre",
    reason: "It is required and has no value.",
  },
  {
    check: "trigger",
    change: {},
    input: { trigger: { params: { genre: "Crime" } } },
    table: "trigger",
    field: "params.genre",
    reason: "The value `Crime` does not match the pattern `[a-z]+`.",
  },
  {
    check: "trigger",
    change: list({
      params: [{ name: "genre" }, { name: "shelf", pattern: "[a-z]+", expr: "concat(params.genre, 7)" }],
    }),
    input: { trigger: { params: { genre: "crime" } } },
    table: "trigger",
    field: "params.shelf",
    reason: "The value `crime7` does not match the pattern `[a-z]+`.",
  },
]);

describe("a bad definition", () => {
  test("has a test for each check", () => {
    const folder = new URL("checks/", import.meta.url);
    const tests = readdirSync(folder).filter((name) => name.endsWith(".test.ts"));
    const texts = tests.map((name) => readFileSync(new URL(name, folder), "utf8"));
    const tested = new Set(
      texts.flatMap((text) => [...text.matchAll(/^ {4}check: "(\w+)",$/gm)].map(([, name]) => name)),
    );
    expect(CHECKS.map(({ name }) => name).filter((name) => !tested.has(name))).toEqual([]);
  });

  test("gets all its problems at once", () => {
    const bad = list({ requiresAuth: true, "pagination.pageSize": 101, "response.idPath": undefined });
    expect(problemsOf(draft(bad)).map(({ field }) => field)).toEqual([
      "auth.type",
      "pagination.pageSize",
      "response.idPath",
    ]);
  });

  test("is told where the value was written, not where it is used", () => {
    const at = (change: Record<string, unknown>, input = {}) => problemsOf(draft(change), input)[0]?.table;
    expect(at({ ...list({ "pagination.pageSize": undefined }), "defaults.pagination.pageSize": 101 })).toBe(
      "reg_provenance",
    );
    expect(
      at({
        ...list({ "pagination.pageSize": undefined }),
        "endpoints.list.overrides": { pagination: { pageSize: 101 } },
      }),
    ).toBe("reg_prov_endpoint_def");
  });

  test("that names an unknown endpoint", () => {
    expect(problemsOf(draft(), { endpointName: "lsit" })).toEqual([
      {
        table: "reg_prov_endpoint_def",
        field: "endpoint",
        reason: "The source `books` has no endpoint `lsit`. Did you mean `list`?",
      },
    ]);
  });

  test.each(["__proto__", "constructor", "toString"])("has no endpoint %s by inheritance", (endpointName) => {
    expect(problemsOf(draft(), { endpointName })).toMatchObject([{ field: "endpoint" }]);
  });
});

describe("a warning", () => {
  const warned = (change: Record<string, unknown>, input: Partial<CompileInput> = {}) =>
    compiledOf(draft(change), input).warnings;

  test.each<[string, Record<string, unknown>, string, RegExp, Partial<CompileInput>?]>([
    [
      "countsCannotBeReconciled",
      list({ "response.totalPath": undefined }),
      "response.totalPath",
      /cannot be reconciled/,
    ],
    [
      "lostPagesRestart",
      list({ ...token, "pagination.tokenClass": "SINGLE_USE" }),
      "pagination.tokenClass",
      /starts again from its first page/,
    ],
    [
      "versionsGoByContent",
      list({ "response.updatedAtPath": undefined }),
      "response.updatedAtPath",
      /whatever comes last/,
    ],
    ["rateIsUndeclared", list({ rateLimit: undefined }), "rateLimit.refillRatePerSec", /1 request a second/],
    [
      "burstCostsRate",
      list({ "rateLimit.burstCapacity": 4 }),
      "rateLimit.burstCapacity",
      /beside bursts of 4 there are 2 a second instead of 5\.$/,
    ],
    [
      "connectionIsOpenToRead",
      { baseUrl: "http://127.0.0.1:8080" },
      "baseUrl",
      /go over http/,
      { allowPrivate: ["127.0.0.1:8080"] },
    ],
    ["orderIsDescending", list({ "pagination.orderBy": "updated desc" }), "pagination.orderBy", /descending order/],
  ])("%s", (_, change, field, reason, input) => {
    expect(warned(change, input)).toEqual([
      { table: expect.stringMatching(/^reg_/), field, reason: expect.stringMatching(reason) },
    ]);
  });

  test("of a cap that is seen late comes with that of the missing total", () => {
    const fields = warned(list({ "response.totalPath": undefined, "window.recordsMax": 10 })).map(({ field }) => field);
    expect(fields).toEqual(["response.totalPath", "window.recordsMax"]);
  });

  test("is not given for a definition that is complete", () => {
    expect(warned({})).toEqual([]);
    expect(WARNINGS.length).toBe(8);
  });
});

describe("a good definition", () => {
  test("compiles to a snapshot", () => {
    const { snapshot } = compiledOf(draft(), { trigger: { params: { genre: "crime" } } });
    expect(snapshot).toMatchObject({
      schemaVersion: 1,
      compilerVersion: COMPILER_VERSION,
      provenanceCode: "books",
      endpointName: "list",
      operation: "HARVEST",
      params: { genre: "crime" },
      spec: {
        http: {
          method: "GET",
          baseUrl: "https://api.example.org/v1",
          headers: { accept: "application/json" },
          connectTimeoutMs: 10_000,
          readTimeoutMs: 30_000,
          responseBytesMax: 64 * 1_024 * 1_024,
          redirects: 0,
        },
        auth: { type: "NONE" },
        pagination: { type: "OFFSET", pageSize: 50, tokenClass: "REPEATABLE", stalledPages: 3 },
        window: {
          granularityMs: 86_400_000,
          minWindowMs: 86_400_000,
          maxWindowMs: 86_400_000,
          safetyLagMs: 600_000,
          align: "day",
          timezone: "UTC",
          boundaryPolicy: "[from,to)",
        },
        retry: { maxAttempts: 5, baseMs: 100, capMs: 30_000, factor: 2, jitter: 0.2 },
        rateLimit: { keys: ["books"], refillRatePerSec: 5, burstCapacity: 1 },
        budget: { concurrency: 8, maxRequests: 10_000 },
        bodies: "all",
      },
    });
    expect(snapshot.spec).not.toHaveProperty("landing");
    expect(snapshot.spec.pagination).not.toHaveProperty("pageSizeMax");
    expect(snapshot.spec.rateLimit).not.toHaveProperty("providerRatePerSec");
  });

  test("has the detail endpoint of two phases, without what the source's defaults say about lists", () => {
    const { snapshot, origins } = compiledOf(
      draft({
        "defaults.window": { timezone: "Europe/Berlin" },
        "defaults.landing": { table: "books" },
        "defaults.pagination": { type: "TOKEN" },
      }),
      twoPhase,
    );
    expect(snapshot.detail).toMatchObject({ endpointName: "details", http: { method: "POST", path: "/details" } });
    expect(snapshot.detail).not.toHaveProperty("window");
    expect(snapshot.detail).not.toHaveProperty("landing");
    expect(snapshot.spec.window?.timezone).toBe("Europe/Berlin");
    expect(origins["window.timezone"]).toBe("provenance");
    expect(origins["detail.response.idPath"]).toBe("cfg");
  });

  test("takes the defaults of parameters, below the values of the trigger", () => {
    const params = list({
      params: [
        { name: "genre", default: "crime" },
        { name: "size", default: 3 },
      ],
    });
    expect(compiledOf(draft(params)).snapshot.params).toEqual({ genre: "crime", size: 3 });
    const triggered = compiledOf(draft(params), { trigger: { params: { genre: "poems" } } });
    expect(triggered.snapshot.params).toEqual({ genre: "poems", size: 3 });
    expect(triggered.origins).toMatchObject({ params: "cfg", "params.genre": "trigger", "params.size": "cfg" });
  });

  test("is classified by its own rules, then those of its family", () => {
    const classifier = [{ when: "status == 404", action: "IGNORE_EMPTY", reason: "nothing there" }];
    const { spec } = compiledOf(draft(list({ classifier, "retry.retryableStatus": [409, 503] }))).snapshot;
    expect(spec.classifier[0]).toEqual(classifier[0]);
    expect(spec.classifier[1]).toMatchObject({ when: "status in [409]", action: "RETRY" });
    expect(spec.classifier.length).toBeGreaterThan(10);
  });

  test("may be harvested without a window where the source has a cursor of its own", () => {
    const scan = list({
      ...token,
      enumerator: "ScanByCursor",
      window: undefined,
      "http.query.from": undefined,
      "http.query.until": undefined,
    });
    expect(compiledOf(draft(scan)).snapshot.spec).not.toHaveProperty("window");
  });

  test.each(["http://127.0.0.1:8080", "https://10.0.0.1", "http://localhost"])(
    "may call %s where it is allowed",
    (baseUrl) => {
      const allowPrivate = ["127.0.0.1:8080", "10.0.0.1:443", "localhost:80"];
      expect(problemsOf(draft({ baseUrl }), { allowPrivate })).toEqual([]);
      expect(problemsOf(draft({ baseUrl }), { allowPrivate: ["127.0.0.1:8081", "10.0.0.1:80"] })).not.toEqual([]);
    },
  );

  test("gives no credential away: only its name is in the snapshot", () => {
    const { snapshot } = compiledOf(draft(list(key)));
    expect(snapshot.spec.auth).toEqual({
      type: "API_KEY",
      location: "QUERY",
      name: "key",
      credential: "key",
      required: true,
    });
    expect(JSON.stringify(snapshot)).not.toContain("BOOKS_KEY");
  });
});

test("the compiler's version has those of the libraries that snapshots depend on", () => {
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies: Record<string, string> };
  expect(COMPILER_VERSION).toContain(`cel-js-${dependencies["@marcbachmann/cel-js"]}`);
  expect(COMPILER_VERSION).toContain(`json-p3-${dependencies["json-p3"]}`);
});
