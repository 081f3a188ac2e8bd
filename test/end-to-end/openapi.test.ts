/** The description of the API is valid, complete, and fit to be read. */
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, test } from "vitest";
import { shownRoute } from "../../src/kernel/http/action-path.ts";
import { useDatabase } from "../database.ts";
import { useMillrace } from "../millrace.ts";
import { operationsOf, readDocument } from "./operations.ts";

const millrace = useMillrace(useDatabase());
const PUBLIC = ["/healthz", "/readyz", "/metrics", "/api/v1/harvest/definition.schema.json", "/api/v1/session"];
/** Pages for people, and the description itself. */
const UNDESCRIBED = /^(\/|\/login|\/openapi\.json|\/docs(\/.*)?)$/;

/** All routes of the server as `GET /path/{parameter}`, read from the tree that it prints. */
function registeredRoutes(): string[] {
  const parts: string[] = [];
  return millrace.app.http
    .printRoutes({ commonPrefix: false })
    .split("\n")
    .flatMap((line) => {
      const [, branches = "", segment = "", methods = ""] =
        /^([│ ]*[├└]── )(.*?)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? [];
      const depth = branches.length / 4;
      if (depth === 0) return [];
      parts.splice(depth - 1, Infinity, segment);
      const path = shownRoute(parts.join("")).replaceAll(/\/:(\w+)/g, "/{$1}");
      return methods === "" ? [] : methods.split(", ").map((method) => `${method} ${path}`);
    });
}

describe("/openapi.json", () => {
  test("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    const outcome = await validator.validate({ ...(await readDocument(millrace.url)) });
    expect(outcome.errors).toBeUndefined();
    expect(outcome.valid).toBe(true);
    expect(validator.version).toBe("3.1");
  });

  test("describes every route that the server has, and no other", async () => {
    const described = operationsOf(await readDocument(millrace.url)).map(({ method, path }) => `${method} ${path}`);
    const registered = registeredRoutes().filter((route) => {
      const [method, path = ""] = route.split(" ");
      return method !== "HEAD" && method !== "OPTIONS" && !UNDESCRIBED.test(path);
    });
    expect(registered.sort()).toEqual(described.sort());
    expect(registered.length).toBeGreaterThan(10);
  });

  test("gives each operation a summary, a tag, and the errors to expect", async () => {
    const operations = operationsOf(await readDocument(millrace.url));
    for (const { method, path, summary, tags, responses, parameters, body } of operations) {
      const what = `${method} ${path}`;
      expect(summary, what).toMatch(/^[A-Z].{5,}[^.]$/);
      expect(tags, what).toHaveLength(1);
      expect(
        Object.keys(responses).some((status) => status.startsWith("2")),
        what,
      ).toBe(true);
      const input = parameters.length > 0 || body !== undefined;
      const errors = PUBLIC.includes(path) ? [] : input ? ["400", "401", "403"] : ["401", "403"];
      expect(Object.keys(responses), what).toEqual(expect.arrayContaining(errors));
    }
  });

  test("shows which bodies may be left out", async () => {
    const actions = operationsOf(await readDocument(millrace.url)).filter(({ path }) => path.includes("}:"));
    const optional = (wanted: boolean) =>
      actions.filter(({ bodyOptional }) => bodyOptional === wanted).map(({ path }) => path.split(":")[1]);
    expect(new Set(optional(true))).toEqual(
      new Set(
        [
          "enable disable start open pause unpause stop resume retry complete publish unpublish test rotate redeliver",
          "sync-start ready replay reset cancel check",
        ].flatMap((words) => words.split(" ")),
      ),
    );
    expect(new Set(optional(false))).toEqual(new Set(["backfill", "run", "accept", "rewind"]));
  });

  test("shows that a field with a default may be left out", async () => {
    const wrong = operationsOf(await readDocument(millrace.url)).flatMap(({ method, path, body, parameters }) => [
      ...(body?.required ?? [])
        .filter((name) => body?.properties?.[name]?.default !== undefined)
        .map((name) => `${method} ${path}: ${name}`),
      ...parameters
        .filter((parameter) => parameter.required && parameter.schema.default !== undefined)
        .map(({ name }) => `${method} ${path}: ${name}`),
    ]);
    expect(wrong).toEqual([]);
  });
});
