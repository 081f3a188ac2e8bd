/**
 * A worker is suspended for longer than its lease, like a closed laptop or a frozen virtual machine, and then resumed.
 * Another worker has its shard meanwhile, and the resumed worker must not change it.
 */
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { startServer } from "../server.ts";
import { reached, trackingTable } from "../tracking.ts";
import { startChild } from "./child.ts";

const database = useDatabase();
const table = trackingTable(database);

type Line = { claimed: { filename: string; shard: number; fence: string } } | { action: string; status: number };
type Action = "done" | "fail" | "heartbeat" | "release";

test("a worker suspended past its lease changes nothing, neither while its successor works nor afterwards", async () => {
  const server = await startServer({ database });
  const filename = await table.put(reached("shard-splitter", "new"));
  const wholeRow = () => database.query("select * from tracking.pipeline_tracking where filename = $1", [filename]);

  const zombie = startChild<Line>("worker.js", ["zombie", "1"], server);
  const held = await zombie.next();
  expect(held).toMatchObject({ claimed: { filename, shard: 0 } });
  zombie.kill("SIGSTOP");

  // Its claim waits until the shard is reclaimed.
  const successor = startChild<Line>("worker.js", ["successor", "60"], server);
  const taken = await successor.next();
  expect(taken).toMatchObject({ claimed: { filename, shard: 0 } });
  expect(taken).not.toEqual(held);

  /** The actions are sent while it is suspended, so it cannot notice in between that its lease expired. */
  async function wakeZombieFor(actions: readonly Action[]): Promise<void> {
    const before = await wholeRow();
    for (const action of actions) zombie.send(action);
    zombie.kill("SIGCONT");
    for (const action of actions) {
      expect(await zombie.next()).toEqual({ action, status: 409, code: "LEASE_LOST" });
    }
    zombie.kill("SIGSTOP");
    expect(await wholeRow()).toEqual(before);
  }

  await wakeZombieFor(["done", "heartbeat", "fail", "release"]);
  expect(await table.row(filename)).toMatchObject({
    shard_splitter_status: "started",
    worker: "successor",
    lost_count: 1,
  });

  successor.send("done" satisfies Action);
  expect(await successor.next()).toEqual({ action: "done", status: 200 });
  await wakeZombieFor(["done", "fail", "heartbeat", "release"]);
  expect(await table.row(filename)).toMatchObject({ shard_splitter_status: "done" });

  zombie.kill("SIGCONT");
  expect(await Promise.all([zombie.finish(), successor.finish(), server.stop()])).toEqual([0, 0, 0]);
});
