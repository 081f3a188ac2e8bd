/** What the kernel keeps of its own history, and that one process at a time deletes. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog } from "../../../test/log.ts";
import { signal } from "../../../test/until.ts";
import { historyRetention } from "../auth/audit-retention.ts";
import { createRetention } from "./retention.ts";

const database = useDatabase();
const deps = () => ({ db: database.db, log: recordingLog(), onRun: () => {} });

test("rows of the audit log and given-up events go after their time, and nothing else", async () => {
  await database.query(
    `insert into kernel.audit_log (at, actor, action, target, address, request_id)
     select now() - make_interval(days => d), 'a', 'x', d::text, '', '' from unnest(array[500, 400, 366, 364, 0]) as t(d)`,
  );
  await database.query(
    `insert into kernel.outbox (event_id, consumer, topic, payload, state, created_at)
     select gen_random_uuid(), 'c', s || d, '{}', s, now() - make_interval(days => d)
     from unnest(array[40, 31, 29]) as t(d), unnest(array['dead', 'ready']) as u(s)`,
  );
  const [audit, outbox] = historyRetention({ ...deps(), auditKeepDays: 365, outboxKeepDays: 30 });
  expect(await audit?.runOnce()).toMatchObject({ deleted: 3 });
  expect(await outbox?.runOnce()).toMatchObject({ deleted: 2 });
  expect(await database.query("select target from kernel.audit_log order by id")).toEqual([
    { target: "364" },
    { target: "0" },
  ]);
  expect(await database.query("select topic from kernel.outbox order by topic")).toEqual(
    ["dead29", "ready29", "ready31", "ready40"].map((topic) => ({ topic })),
  );
  expect(await audit?.runOnce()).toMatchObject({ deleted: 0 });
});

test("while one process deletes, another does nothing", async () => {
  const [began, gate] = [signal(), signal()];
  const slow = createRetention({
    ...deps(),
    name: "test.retention",
    async deleteBatch() {
      began.resolve();
      await gate.promise;
      return { looked: 1, deleted: 1 };
    },
  });
  const first = slow.runOnce();
  await began.promise;
  const other = createRetention({
    ...deps(),
    name: "test.retention",
    deleteBatch: async () => ({ looked: 1, deleted: 1 }),
  });
  expect(await other.runOnce()).toEqual({ looked: 0, deleted: 0 });
  gate.resolve();
  expect(await first).toEqual({ looked: 1, deleted: 1 });
  expect(await other.runOnce()).toEqual({ looked: 1, deleted: 1 });
});
