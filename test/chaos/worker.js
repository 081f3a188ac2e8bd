/**
 * A worker that claims one shard, prints what it got, and then executes the actions on standard input (`done`, `fail`,
 * `heartbeat`, `release`), one per line, and prints each answer. After a suspension it does not know that its lease expired.
 */
import { createInterface } from "node:readline";
import { call, print } from "./call.js";

const [worker, leaseSeconds] = process.argv.slice(2);
const claim = { worker, lease_seconds: Number(leaseSeconds), wait_seconds: 60 };
const { body } = await call("/queues/shard-splitter/claim", claim);
const [{ filename, shard, fence }] = body.items;
print({ claimed: { filename, shard, fence } });

for await (const action of createInterface({ input: process.stdin })) {
  const finishes = action === "done" || action === "fail";
  const answer = finishes
    ? await call(`/stages/shard-splitter/${action}`, { filename, shard, fence })
    : await call(`/queues/shard-splitter/${action}`, { items: [{ filename, shard, fence }] });
  print({ action, status: answer.status, code: answer.body.code });
}
