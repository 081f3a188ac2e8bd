import { expect, test } from "vitest";
import { type Connectivity, createConnectivity } from "./connectivity.ts";

/** A server that can be away, asked whenever the test says so. */
function connectivityOf() {
  let go = (): void => {};
  const server = { isThere: true, probes: 0 };
  const connectivity: Connectivity = createConnectivity(
    async () => {
      server.probes += 1;
      if (server.isThere) connectivity.answered();
      else connectivity.unanswered(99);
    },
    () => new Promise((resolve) => (go = resolve)),
  );
  const step = async () => {
    go();
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  };
  return { server, connectivity, step };
}

test("a server is away since the first request without an answer, once another one has none either", async () => {
  const { server, connectivity, step } = connectivityOf();
  const seen: unknown[] = [];
  connectivity.subscribe(() => seen.push(connectivity.unreachableSince()));
  server.isThere = false;
  connectivity.unanswered(1);
  expect(connectivity.unreachableSince()).toBe(undefined);
  await step();
  expect(connectivity.unreachableSince()).toBe(1);
  connectivity.unanswered(2);
  await step();
  expect(seen).toEqual([1]);

  server.isThere = true;
  await step();
  expect(seen).toEqual([1, undefined]);
  const { probes } = server;
  await step();
  expect(server.probes).toBe(probes);
});

test("one request that is lost does not say that the server is away", async () => {
  const { server, connectivity, step } = connectivityOf();
  connectivity.unanswered(1);
  await step();
  expect([connectivity.unreachableSince(), server.probes]).toEqual([undefined, 1]);
});
