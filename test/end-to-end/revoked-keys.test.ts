/** Requests that stay open end when their key is revoked, in whichever process that happens. */
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../database.ts";
import { startMillrace, type TestMillrace, useMillrace } from "../millrace.ts";
import { until } from "../until.ts";

const database = useDatabase();
const millrace = useMillrace(database);
let runId: string;
/** Well before the poll that finds a lost hint. */
const PROMPT_MS = 5_000;

beforeAll(async () => {
  const dagJson = { nodes: [{ id: "a", type: "noop" }] };
  const { body } = await millrace.api.post("/api/v1/chains", { name: "watched", dagJson });
  const started = await millrace.api.post(`/api/v1/chains/${String(body["chainId"])}:start`);
  runId = String(started.body["runId"]);
});

async function makeKey(scopes: string[]) {
  const { body } = await millrace.api.post("/api/v1/keys", { name: "to be revoked", scopes });
  return { id: String(body["id"]), authorization: `Bearer ${String(body["key"])}` };
}

async function watchRun(on: TestMillrace, authorization: string) {
  const control = new AbortController();
  onTestFinished(() => control.abort());
  const response = await fetch(`${on.url}/api/v1/runs/${runId}/stream`, {
    headers: { authorization },
    signal: control.signal,
  });
  const stream = { response, text: "", hasEnded: false };
  void (async () => {
    for await (const bytes of response.body ?? []) stream.text += Buffer.from(bytes).toString();
    stream.hasEnded = true;
  })().catch(() => {});
  await until(() => stream.text.includes("event: nodes"), "the first events");
  return stream;
}

describe("a stream", () => {
  test("ends when its key is revoked, here and in other processes, and those of other keys go on", async () => {
    const other = await startMillrace(database);
    onTestFinished(() => other.app.stop());
    const [revoked, kept] = [await makeKey(["run:read"]), await makeKey(["run:read"])];
    const streams = await Promise.all([millrace, other].map((on) => watchRun(on, revoked.authorization)));
    const another = await watchRun(other, kept.authorization);
    const from = performance.now();
    expect((await millrace.api.delete(`/api/v1/keys/${revoked.id}`)).status).toBe(200);
    for (const stream of streams) {
      await until(() => stream.hasEnded, "the stream to end");
      expect(stream.text).toContain('"code":"UNAUTHENTICATED"');
    }
    expect(performance.now() - from).toBeLessThan(PROMPT_MS);
    expect(another.hasEnded).toBe(false);
  });

  test("ends although the hint of the revocation is lost", async () => {
    const { id, authorization } = await makeKey(["run:read"]);
    const stream = await watchRun(millrace, authorization);
    await database.query("update kernel.api_key set revoked_at = now() where id = $1", [id]);
    await until(() => stream.hasEnded, "the poll to find it");
  });

  test("has the headers of every answer", async () => {
    const { response } = await watchRun(millrace, (await makeKey(["run:read"])).authorization);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response.headers.get("x-request-id")).toMatch(/./);
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  });
});

test("a claim that waits gets nothing once its key is revoked", async () => {
  const { id, authorization } = await makeKey(["pipeline:write"]);
  const waiting = fetch(`${millrace.url}/api/v1/pipeline/queues/shard-splitter/claim`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ worker: "w", wait_seconds: 50 }),
  });
  const claims = /statement="tracking.shard_splitter.claim"\} [1-9]/;
  await until(async () => claims.test(await millrace.app.registry.render()), "the claim to wait");
  const from = performance.now();
  await millrace.api.delete(`/api/v1/keys/${id}`);
  expect(((await (await waiting).json()) as { items: unknown[] }).items).toEqual([]);
  expect(performance.now() - from).toBeLessThan(PROMPT_MS);
});
