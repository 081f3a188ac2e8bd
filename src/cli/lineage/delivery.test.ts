/** Delivery to a server that is busy, unreachable, or refuses a whole batch for one event. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createClient } from "../common/client.ts";
import { createDelivery } from "./delivery.ts";

type Answer = { status: number; body: object } | "hang up";
let server: Server | undefined;
afterEach(() => server?.close());

const taken = { status: 200, body: { failed_events: [] } };
const busy = { status: 503, body: { error: "Too much work is waiting.", code: "OVERLOADED" } };

/** Returns the given replies in turn; records how many events each request had. */
async function sink(answer: (names: string[], nr: number) => Answer) {
  const requests: string[][] = [];
  const waits: string[] = [];
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const names = (JSON.parse(text) as { name: string }[]).map(({ name }) => name);
    requests.push(names);
    const reply = answer(names, requests.length);
    if (reply === "hang up") return void request.socket.destroy();
    response
      .writeHead(reply.status, { "content-type": "application/json", "millrace-version": "0.0.0" })
      .end(JSON.stringify(reply.body));
  }
  server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createClient({ env: {}, flags: { url } });
  const deliver = createDelivery(client, "batch", (reason) => void waits.push(reason));
  return { requests, waits, deliver: (...names: string[]) => deliver(names.map(eventOf)) };
}

const eventOf = (name: string, index: number) => ({ file: "f", line: index + 1, text: JSON.stringify({ name }) });

test("it retries while the server is busy, and sends only events that were not accepted", async () => {
  const { requests, waits, deliver } = await sink((names, nr) => {
    if (nr === 1) return busy;
    const failed = names.flatMap((name, index) => (name === "bad" ? [{ index, reason: "No.", retriable: false }] : []));
    const later = nr === 2 ? [{ index: 2, reason: "Too many in a minute.", retriable: true }] : [];
    return { status: 200, body: { failed_events: [...failed, ...later] } };
  });
  expect(await deliver("a", "bad", "c")).toEqual([{ file: "f", line: 2, reason: "No." }]);
  expect(requests).toEqual([["a", "bad", "c"], ["a", "bad", "c"], ["c"]]);
  expect(waits).toEqual(["Too much work is waiting. [OVERLOADED]", "1 event to retry: Too many in a minute."]);
});

test("it retries a server that was reached before, but not one that never was", async () => {
  const later = await sink((_, nr) => (nr === 2 ? "hang up" : taken));
  await later.deliver("a");
  expect(await later.deliver("b")).toEqual([]);
  expect(later.requests).toEqual([["a"], ["b"], ["b"]]);
  server?.close();

  const never = await sink(() => "hang up");
  await expect(never.deliver("a")).rejects.toThrow("No Millrace answers");
  expect(never.requests).toHaveLength(1);
});

test("the one event for which a batch is refused is found, and the others are accepted", async () => {
  const { requests, deliver } = await sink((names) =>
    names.includes("deep") ? { status: 400, body: { error: "Too deep.", code: "MALFORMED_JSON" } } : taken,
  );
  expect(await deliver("a", "b", "deep", "d", "e")).toEqual([
    { file: "f", line: 3, reason: "Too deep. [MALFORMED_JSON]" },
  ]);
  expect(
    requests
      .filter((names) => !names.includes("deep"))
      .flat()
      .sort(),
  ).toEqual(["a", "b", "d", "e"]);
});

test("a refusal of the key ends the delivery", async () => {
  const { requests, deliver } = await sink(() => ({ status: 403, body: { error: "No.", code: "FORBIDDEN" } }));
  await expect(deliver("a", "b")).rejects.toThrow("No. [FORBIDDEN]");
  expect(requests).toHaveLength(1);
});
