import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { outboxCheck } from "./outbox-check.ts";

const database = useDatabase();

beforeEach(async () => {
  await database.query("truncate kernel.outbox");
});

describe("the doctor", () => {
  test("finds nothing wrong with an outbox that is delivered", async () => {
    expect(await outboxCheck.look(database.db)).toEqual({ verdict: "ok", found: "Events to deliver: 0." });
  });

  test.each([
    ["that nobody delivers", "due_at = now() - interval '200 s'", /One for `mail` has been due for 200 s\./],
    [
      "that a process holds for long",
      "state = 'leased', session_id = 1, fence = 1, due_at = now() - interval '400 s'",
      /One for `mail` is held by a process and was due 400 s ago\./,
    ],
    [
      "that was given up, with its reason",
      "state = 'dead', last_error = 'no route to host'",
      /the latest for `mail`: no route to host/,
    ],
  ])("reports an event %s", async (_, set, found) => {
    await addEvent();
    await database.query(`update kernel.outbox set ${set}`);
    const finding = await outboxCheck.look(database.db);
    expect(finding).toMatchObject({ verdict: "warning", advice: expect.any(String) });
    expect(finding.found).toMatch(found);
  });

  test("does not take a backlog that is being delivered for one that hangs", async () => {
    await addEvent();
    await database.query(
      "update kernel.outbox set state = 'leased', session_id = 1, fence = 1, due_at = now() - interval '400 s'",
    );
    await addEvent();
    await database.query("update kernel.outbox set due_at = now() - interval '390 s' where state = 'ready'");
    expect((await outboxCheck.look(database.db)).found).toContain("has been due for 390 s");
  });
});

function addEvent(): Promise<unknown[]> {
  return database.query(
    "insert into kernel.outbox (event_id, consumer, topic, payload) values (gen_random_uuid(), 'mail', 'topic', '{}')",
  );
}
