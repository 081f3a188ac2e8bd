/** Methods that a path does not take, on every path of `/openapi.json`. */
import { beforeAll, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { useMillrace } from "../millrace.ts";
import { isStream, operationsOf, pathOf, readDocument } from "./operations.ts";

const millrace = useMillrace(useDatabase());
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** The methods and an address of each path. */
const paths = new Map<string, { methods: Set<string>; url: string }>();

beforeAll(async () => {
  for (const operation of operationsOf(await readDocument(millrace.url))) {
    const known = paths.get(operation.path) ?? { methods: new Set(), url: millrace.url + pathOf(operation) };
    known.methods.add(operation.method);
    if (operation.method === "GET" && !isStream(operation)) known.methods.add("HEAD");
    paths.set(operation.path, known);
  }
});

function othersLike(path: string) {
  return [...paths].flatMap(([other, known]) =>
    other !== path && new RegExp(`^${other.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path) ? [known] : [],
  );
}

test("are answered with 405 and those that it takes", async () => {
  expect(paths.size).toBeGreaterThan(70);
  for (const [path, { methods, url }] of paths) {
    for (const method of METHODS) {
      // Some paths fit others: `GET /runs/1:stop` reads the run `1:stop`, and `GET /files/register` the file `register`.
      if (methods.has(method) || othersLike(path).some((other) => other.methods.has(method))) continue;
      const response = await fetch(url, { method });
      const body = method === "HEAD" ? undefined : ((await response.json()) as { code: string });
      const place = `${method} ${path}`;
      expect(response.status, place).toBe(405);
      expect(response.headers.get("allow"), place).toBe([...methods].toSorted().join(", "));
      if (body) expect(body.code, place).toBe("METHOD_NOT_ALLOWED");
    }
  }
});

test("of an action, too, if no resource takes them", async () => {
  const response = await fetch(`${millrace.url}/api/v1/runs/1:stop`, { method: "DELETE" });
  expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
});

test.each([
  ["POST", "/api/v1/runs/1:stpo", "The reference is at /docs."],
  ["POST", "/api/v1/runs/:runId:stpo", "Did you mean POST /api/v1/runs/:runId:stop?"],
  ["GET", "/api/v1/chain", "Did you mean POST or GET /api/v1/chains?"],
  ["GET", "/nothing/like/it", "The reference is at /docs."],
])("of a path that there is not are 404 with a hint: %s %s", async (method, path, hint) => {
  const response = await fetch(millrace.url + path, { method });
  expect(response.status).toBe(404);
  expect(((await response.json()) as { error: string }).error).toContain(hint);
});

test("need no key where the description says so, and only there", async () => {
  const document = (await readDocument(millrace.url)) as unknown as {
    security: unknown;
    paths: Record<string, Record<string, { security?: unknown }>>;
  };
  const open = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.values(methods).flatMap(({ security }) => (security === undefined ? [] : [[path, security]])),
  );
  expect(Object.fromEntries(open)).toEqual({
    "/healthz": [],
    "/readyz": [],
    "/metrics": [],
    "/api/v1/harvest/definition.schema.json": [],
    "/api/v1/session": [],
  });
  expect(document.security).toEqual([{ key: [] }]);
});
