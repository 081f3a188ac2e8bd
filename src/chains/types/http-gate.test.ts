import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openGates, type TestGates } from "../../kernel/gate/gates.fixture.ts";
import { createOutbound } from "../../kernel/net/outbound.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { httpType } from "./http.ts";
import { nodeContext, type RecordedContext } from "./node-context.fixture.ts";
import { mayRetry } from "./node-type.ts";
import { createRegistry } from "./registry.ts";

const database = useDatabase();
const outbound = createOutbound({ allowPrivate: true });
let answer: (response: ServerResponse) => unknown;
let calls = 0;
const server = createServer((_, response) => {
  calls += 1;
  answer(response);
});
let gates: TestGates;
let ctx: RecordedContext;

beforeAll(async () => {
  gates = await openGates(database.db);
  await once(server.listen(0, "127.0.0.1"), "listening");
});
beforeEach(() => {
  calls = 0;
  answer = (response) => response.end("ok");
});
afterAll(async () => {
  await outbound.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function run(cfg: object): Promise<unknown> {
  const type = httpType({ outbound, gates, clock: systemClock });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const checked = createRegistry([type]).complete("http", { url, ...cfg });
  if ("problems" in checked) throw new Error(checked.problems.map(({ message }) => message).join("\n"));
  ctx = nodeContext();
  return (await type.execute(ctx, checked.cfg as Parameters<typeof type.execute>[1])).artifact;
}

async function stateOf(key: string) {
  const [row] = await gates.describe([key]);
  if (!row) throw new Error(`no gate ${key}`);
  return row;
}

test("a node waits for the permit of its gate, and logs it", async () => {
  await gates.declare(database.db, [{ key: "paced", ratePerSec: 2 }]);
  const [row] = await database.query<{ due: number }>(
    `update kernel.rate_gate set tat = clock_timestamp() + interval '2 seconds' where key = 'paced'
     returning extract(epoch from tat)::float8 * 1000 as due`,
  );
  expect(await run({ gate: "paced" })).toMatchObject({ status: 200 });
  expect(Date.now()).toBeGreaterThanOrEqual(Math.floor(row?.due ?? Number.POSITIVE_INFINITY));
  expect(ctx.lines.map(({ text }) => text)).toContainEqual(
    expect.stringMatching(/^waited \d+ ms for the gate `paced`$/),
  );
});

test("a wait beyond the time-out of the node fails without a request, says when to come back, and may be retried", async () => {
  await gates.declare(database.db, [{ key: "closed", ratePerSec: 50 }]);
  await gates.feedback("closed", { kind: "wait", retryAfterMs: 90_000 });
  const error = (await run({ gate: "closed", timeoutMs: 5_000 }).catch((thrown: unknown) => thrown)) as Error;
  expect(error.message).toMatch(/^The gate `closed` is closed, because its service asked .* Try again in 9\d s\.$/);
  expect(mayRetry(error)).toBe(true);
  expect(calls).toBe(0);
});

test("429 slows its gate down, and Retry-After closes it for that time", async () => {
  await gates.declare(database.db, [{ key: "busy", ratePerSec: 50 }]);
  answer = (response) => response.writeHead(429, { "retry-after": "30" }).end();
  await expect(run({ gate: "busy" })).rejects.toThrow("answered 429");
  const { current_rate_per_sec, cooldown_until } = await stateOf("busy");
  expect(current_rate_per_sec).toBe(25);
  expect((cooldown_until?.getTime() ?? 0) - Date.now()).toBeGreaterThan(25_000);
});

test("a server error alone leaves the gate as it is", async () => {
  await gates.declare(database.db, [{ key: "ill", ratePerSec: 50 }]);
  answer = (response) => response.writeHead(500).end();
  await expect(run({ gate: "ill" })).rejects.toThrow("answered 500");
  expect(await stateOf("ill")).toMatchObject({ current_rate_per_sec: 50, cooldown_until: null });
});

test("the slot of a request is free again, whether it succeeds or not", async () => {
  await gates.declare(database.db, [{ key: "narrow", ratePerSec: 100, concurrency: 1 }]);
  let taken = 0;
  answer = async (response) => {
    taken = (await stateOf("narrow")).slots_taken;
    response.end();
  };
  await run({ gate: "narrow" });
  expect(taken).toBe(1);
  expect(await stateOf("narrow")).toMatchObject({ slots_taken: 0 });
  answer = (response) => response.destroy();
  await expect(run({ gate: "narrow" })).rejects.toThrow("failed");
  expect(await stateOf("narrow")).toMatchObject({ slots_taken: 0 });
});
