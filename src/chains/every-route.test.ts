/** Tests for every route of chains and runs, from `/openapi.json`: its scope, and unknown ids. */
import { beforeAll, describe, expect, test } from "vitest";
import { refusal, useChains } from "../../test/chains.ts";
import type { Answer, Json } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { example, type Operation, operationsOf, pathOf, readDocument } from "../../test/end-to-end/operations.ts";

const chains = useChains(useDatabase());
const UNKNOWN_ID = "00000000-0000-4000-8000-000000000000";
let operations: Operation[] = [];
const known: Record<string, string> = { nodeId: "load", name: "a-pool" };

beforeAll(async () => {
  const chainId = await chains.define([{ id: "load", type: "noop" }]);
  const schedule = { name: "nightly", cron: "0 3 * * *", paused: true };
  const { body } = await chains.api.post(`/api/v1/chains/${chainId}/schedules`, schedule);
  const runId = await chains.start(chainId);
  await chains.reaches(runId, "SUCCESS");
  Object.assign(known, { chainId, runId, scheduleId: String(body["scheduleId"]) });
  operations = operationsOf(await readDocument(chains.url), known).filter(({ tags = [] }) =>
    tags.some((tag) => tag === "chains" || tag === "runs"),
  );
});

/** With the body of the examples. */
async function call(operation: Operation, path: string, key?: string): Promise<Answer<Json>> {
  const body = operation.body === undefined ? {} : { body: JSON.stringify(example(operation.body)) };
  return chains.api.send(path, {
    method: operation.method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(operation.body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...body,
  });
}

/** The scope that each route must require. */
function scopeOf({ method, path, tags }: Operation): string {
  if (/:(start|backfill)$/.test(path)) return "run:write";
  if (tags?.includes("runs")) return method === "GET" ? "run:read" : "run:control";
  return method === "GET" ? "chain:read" : "chain:write";
}

describe("a key", () => {
  const scopes = ["chain:read", "chain:write", "run:read", "run:write", "run:control"] as const;

  test.each(scopes)("with %s may call the routes of that scope and no other", async (scope) => {
    const { body: made } = await chains.api.post("/api/v1/keys", { name: scope, scopes: [scope] });
    const allowed: string[] = [];
    for (const operation of operations) {
      // The id is unknown, so that an allowed call changes nothing.
      const unknown = { chainId: UNKNOWN_ID, runId: UNKNOWN_ID, name: "no-pool" };
      const withoutBody = { ...operation, body: undefined };
      const { status } = await call(withoutBody, pathOf(operation, unknown), String(made["key"]));
      if (status !== 403) allowed.push(`${operation.method} ${operation.path}`);
    }
    const required = operations.filter((operation) => scopeOf(operation) === scope);
    expect(allowed).toEqual(required.map(({ method, path }) => `${method} ${path}`));
    expect(allowed.length).toBeGreaterThan(1);
  });
});

describe("an unknown id", () => {
  const codes: Record<string, string> = {
    chainId: "CHAIN_NOT_FOUND",
    runId: "RUN_NOT_FOUND",
    nodeId: "NODE_NOT_FOUND",
    scheduleId: "SCHEDULE_NOT_FOUND",
  };
  const odd: [what: string, id: string][] = [
    ["unknown", UNKNOWN_ID],
    ["short", "x"],
    ["a number", "42"],
    ["of one digit too many", `${UNKNOWN_ID}0`],
    ["in braces", `{${UNKNOWN_ID}}`],
    ["with a percent sign", "100%"],
    ["with what looks like an escape", "%41"],
    ["in another script", "运行é😀"],
    ["with colons", "a:b:stop"],
    ["with a slash", "a/b"],
    ["with a line break", "a\nb"],
    ["with dots", "v1.2.x"],
    ["with spaces", " "],
    ["SQL", "' or '1'='1"],
    ["as long as is allowed", "x".repeat(256)],
  ];

  test.each(odd)("is answered with 400 everywhere: %s", async (_what, id) => {
    let count = 0;
    for (const operation of operations) {
      for (const [name, code] of Object.entries(codes)) {
        if (!operation.path.includes(`{${name}}`)) continue;
        count += 1;
        const answer = await call(operation, pathOf(operation, { [name]: encodeURIComponent(id) }));
        // For an unknown chain and schedule, the error names the schedule.
        const expected = operation.path.includes("{scheduleId}") && id === UNKNOWN_ID ? "SCHEDULE_NOT_FOUND" : code;
        expect(refusal(answer), `${operation.method} ${operation.path}, ${name}`).toEqual([400, expected]);
      }
    }
    expect(count).toBeGreaterThan(30);
  });

  test.each([
    ["too long", "x".repeat(257)],
    ["absurdly long", "x".repeat(5_000)],
    ["with a NUL", "%00"],
    ["with a broken escape", "%"],
    ["that is not UTF-8", "%FF"],
  ])("that is %s is answered with 400 everywhere, too", async (_what, raw) => {
    for (const operation of operations) {
      for (const name of Object.keys(codes)) {
        if (!operation.path.includes(`{${name}}`)) continue;
        const answer = await call(operation, pathOf(operation, { [name]: raw }));
        expect(refusal(answer)[0], `${operation.method} ${operation.path}, ${name}`).toBe(400);
      }
    }
  });

  test("of a pool is answered with 400", async () => {
    expect(refusal(await chains.api.delete("/api/v1/pools/nobody"))).toEqual([400, "POOL_NOT_FOUND"]);
    for (const name of ["a%20b", "%25", "x".repeat(65), "%E8%BF%90"]) {
      expect(refusal(await chains.api.delete(`/api/v1/pools/${name}`))).toEqual([400, "VALIDATION_FAILED"]);
      expect(refusal(await chains.api.put(`/api/v1/pools/${name}`, { size: 1 }))).toEqual([400, "VALIDATION_FAILED"]);
    }
  });
});
