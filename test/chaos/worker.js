/**
 * A worker that claims one shard, tells what it got, and then does to it what it reads on standard input (`done`, `fail`,
 * `heartbeat`, `release`), one a line, telling each answer. Suspended meanwhile, it cannot know how late it is.
 */
import { createInterface } from "node:readline";
import { call, tell } from "./call.js";

const [worker, leaseSeconds] = process.argv.slice(2);
const claim = { worker, lease_seconds: Number(leaseSeconds), wait_seconds: 60 };
const { body } = await call("/queues/shard-splitter/claim", claim);
const [{ filename, shard, fence }] = body.items;
tell({ claimed: { filename, shard, fence } });

for await (const action of createInterface({ input: process.stdin })) {
  const finishes = action === "done" || action === "fail";
  const answer = finishes
    ? await call(`/stages/shard-splitter/${action}`, { filename, shard, fence })
    : await call(`/queues/shard-splitter/${action}`, { items: [{ filename, shard, fence }] });
  tell({ action, status: answer.status, code: answer.body.code });
}
