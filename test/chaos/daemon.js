/**
 * A daemon of the stage shard-splitter: claims a batch, waiting for work if there is none, tells what it was given, and
 * finishes it, until it is told to stop by the end of its standard input.
 */
import { call, tell } from "./call.js";

const [worker, batch] = process.argv.slice(2);
const stopping = new AbortController();
process.stdin.resume().once("end", () => stopping.abort());
tell({ ready: true });

while (!stopping.signal.aborted) {
  const claim = { worker, limit: Number(batch), lease_seconds: 60, wait_seconds: 2 };
  const { status, body } = await call("/queues/shard-splitter/claim", claim);
  if (status !== 200) throw new Error(JSON.stringify(body));
  /** @type {{ filename: string, shard: number, fence: string }[]} */
  const items = body.items;
  if (items.length === 0) continue;
  tell({ started: items.map(({ filename, shard, fence }) => [filename, shard, fence]) });
  const moves = items.map(({ filename, shard, fence }) => ({ filename, shard, fence }));
  const done = await call("/stages/shard-splitter/done", { items: moves });
  tell({ done: done.body.updated_rows });
}
