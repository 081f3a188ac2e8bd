import { expect, test } from "vitest";
import { createReach, type Reach } from "./reach.ts";

/** A server that can be away, asked whenever the test says so. */
function reachOf() {
  let go = (): void => {};
  const server = { isThere: true, probes: 0 };
  const reach: Reach = createReach(
    async () => {
      server.probes += 1;
      if (server.isThere) reach.answered();
      else reach.unanswered(99);
    },
    () => new Promise((resolve) => (go = resolve)),
  );
  const step = async () => {
    go();
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  };
  return { server, reach, step };
}

test("a server is away since the first request without an answer, once another one has none either", async () => {
  const { server, reach, step } = reachOf();
  const seen: unknown[] = [];
  reach.subscribe(() => seen.push(reach.awaySince()));
  server.isThere = false;
  reach.unanswered(1);
  expect(reach.awaySince()).toBe(undefined);
  await step();
  expect(reach.awaySince()).toBe(1);
  reach.unanswered(2);
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
  const { server, reach, step } = reachOf();
  reach.unanswered(1);
  await step();
  expect([reach.awaySince(), server.probes]).toEqual([undefined, 1]);
});
