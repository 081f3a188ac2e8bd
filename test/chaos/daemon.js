/**
 * A daemon of the stage shard-splitter: claims a batch, with a wait for work, prints what it got and finishes it, until its
 * standard input ends.
 */
import { call, print } from "./call.js";

const [worker, batch] = process.argv.slice(2);
const stopping = new AbortController();
process.stdin.resume().once("end", () => stopping.abort());
print({ ready: true });

while (!stopping.signal.aborted) {
  const claim = { worker, limit: Number(batch), lease_seconds: 60, wait_seconds: 2 };
  const { status, body } = await call("/queues/shard-splitter/claim", claim);
  if (status !== 200) throw new Error(JSON.stringify(body));
  /** @type {{ filename: string, shard: number, fence: string }[]} */
  const items = body.items;
  if (items.length === 0) continue;
  print({ started: items.map(({ filename, shard, fence }) => [filename, shard, fence]) });
  const moves = items.map(({ filename, shard, fence }) => ({ filename, shard, fence }));
  const done = await call("/stages/shard-splitter/done", { items: moves });
  print({ done: done.body.updated_rows });
}
