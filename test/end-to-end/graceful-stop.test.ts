/** SIGTERM, seen by callers who come too late or go on asking. What is in flight then is a matter of test/chaos. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { startServer } from "../server.ts";
import { until } from "../until.ts";

/** Far below the time for which connections are kept alive: clients that keep theirs open must not hold up the end. */
const STOP_MS_MAX = 5_000;

const database = useDatabase();

test("a request after the stop began is answered to try again", async () => {
  const server = await startServer({ database });
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.write("GET /healthz HTTP/1.1\r\nHost: millrace\r\n"); // Begun, so that the connection is not an idle one.
  await server.api.get("/healthz"); // By now the server has seen it.
  server.kill("SIGTERM");
  await until(
    () =>
      server.api.get("/healthz").then(
        () => false,
        () => true,
      ),
    "the server to stop listening",
  );
  socket.write("\r\n");
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1\.1 503 /);
  expect(answer).toMatch(/^retry-after: \d+\r$/im);
  expect(answer).toContain('"code":"SHUTTING_DOWN"');
  expect(await server.exited, server.output()).toBe(0);
});

test("clients that go on asking do not hold up the end, and see no other answer than 200 and 503", async () => {
  const server = await startServer({ database });
  const over = new AbortController();
  const answers: number[] = [];
  const odd: unknown[] = [];
  async function keepAsking(): Promise<void> {
    while (!over.signal.aborted) {
      const answer = await server.api.get("/api/v1/pipeline/queues/shard-worker").catch(() => undefined);
      if (answer === undefined) return; // No longer listening.
      answers.push(answer.status);
      const turnedAway = answer.status === 503 && Number(answer.headers.get("retry-after")) > 0;
      if (answer.status !== 200 && !turnedAway) odd.push(answer);
    }
  }
  const clients = Promise.all(Array.from({ length: 8 }, keepAsking));
  await until(() => answers.length > 100, "the clients to be busy");
  const begun = performance.now();
  expect(await server.stop(), server.output()).toBe(0);
  expect(performance.now() - begun).toBeLessThan(STOP_MS_MAX);
  over.abort();
  await clients;
  expect(odd).toEqual([]);
});
