import { beforeEach, expect, test } from "vitest";
import { signatureHeaders } from "../webhooks/secrets/signing.ts";
import { type Received, type Subscribers, startSubscribers } from "./subscribers.ts";

const KEY = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
const OTHER_KEY = `whsec_${Buffer.alloc(32, 2).toString("base64")}`;
const BODY = JSON.stringify({ event: "KPI_UPDATED", modelId: "SALES", opTime: "20251219", generation: 2, rerun: true });
const now = () => Math.floor(Date.now() / 1000);

let subscribers: Subscribers;
let received: Received[];
beforeEach(async () => {
  received = [];
  subscribers = await startSubscribers({ onReceived: (delivery) => received.push(delivery) });
  subscribers.trust("finance", KEY);
  return subscribers.close;
});

async function deliver({ id = "1", timestamp = now(), keys = [KEY], token = "known-to-finance", body = BODY } = {}) {
  const headers = { ...signatureHeaders({ id, timestamp, body: BODY }, keys), authorization: token };
  const { status } = await fetch(subscribers.callbackUrl("finance"), { method: "POST", headers, body });
  return status;
}

test("a valid delivery counts once, however often it is sent", async () => {
  expect(await deliver()).toBe(204);
  expect(await deliver()).toBe(204);
  expect(received).toEqual([
    { team: "finance", id: "1", modelId: "SALES", opTime: "20251219", generation: 2, rerun: true },
  ]);
  expect(subscribers.received()).toEqual(received);
});

test("one of several signatures is enough, as during a rotation", async () => {
  expect(await deliver({ keys: [OTHER_KEY, KEY] })).toBe(204);
});

test.each([
  ["with another key", { keys: [OTHER_KEY] }],
  ["without a signature", { keys: [] }],
  ["with another body", { body: BODY.replace(":2,", ":3,") }],
  ["of an hour ago", { timestamp: now() - 3_600 }],
  ["without the secret", { token: "guessed" }],
])("a delivery %s is refused", async (_, fields) => {
  expect(await deliver(fields)).toBe(401);
  expect(subscribers.received()).toEqual([]);
});

test("a team without a key accepts no delivery", async () => {
  const url = `${subscribers.callbackUrl("growth")}?token=known-to-growth`;
  const headers = signatureHeaders({ id: "1", timestamp: now(), body: BODY }, [KEY]);
  expect((await fetch(url, { method: "POST", headers, body: BODY })).status).toBe(401);
});

test("a team that is down refuses with the time to wait, until it recovers", async () => {
  subscribers.trust("audit", KEY);
  const call = () => {
    const headers = signatureHeaders({ id: "1", timestamp: now(), body: BODY }, [KEY]);
    const url = `${subscribers.callbackUrl("audit")}?token=known-to-audit`;
    return fetch(url, { method: "POST", headers, body: BODY });
  };
  const refused = await call();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "30"]);
  subscribers.recover("audit");
  expect((await call()).status).toBe(204);
});
