import { describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openDb } from "../../kernel/data/db.ts";
import { gravitinoEvent, gravitinoFacet } from "../events.fixture.ts";
import { testLineage } from "../lineage.fixture.ts";
import { createSettledAssertions } from "./settled-assertions.ts";

const database = useDatabase();
const lineage = testLineage(database);

test("what was applied counts as settled, and a batch only if all of it is", () => {
  const settled = createSettledAssertions();
  settled.wereApplied(["a", "b"]);
  expect([settled.areSettled(["a", "b"]), settled.areSettled(["a", "c"])]).toEqual([true, false]);
});

test("what was wrong once does not count again when it has been applied, until all is forgotten", () => {
  const settled = createSettledAssertions();
  settled.wereApplied(["a"]);
  settled.wereWrong(["a"]);
  settled.wereApplied(["a"]);
  expect(settled.areSettled(["a"])).toBe(false);
  settled.wereApplied(Array.from({ length: 100_000 }, (_, n) => `other ${n}`));
  settled.wereApplied(["a"]);
  expect(settled.areSettled(["a"])).toBe(true);
});

describe("an event that seems to tell nothing new", () => {
  /** A process that notes how it locks graphs. */
  function noting() {
    const db = openDb({
      connection: database.connection,
      onStatement: (name) => void (name.startsWith("lineage.lock_") && locks.push(name.replace("lineage.lock_", ""))),
    });
    const locks: string[] = [];
    onTestFinished(() => db.close());
    return { one: testLineage(database, { db }), locks };
  }
  const described = (description: string, second: number) =>
    gravitinoEvent("create_table", {
      eventTime: `2026-03-01T10:00:${String(second).padStart(2, "0")}Z`,
      facets: gravitinoFacet({ description }),
    });

  test("takes the shared lock once its assertion was applied", async () => {
    const { one, locks } = noting();
    const tenant = await lineage.tenant();
    for (const second of [1, 2, 3]) await one.send(tenant, described("one", second));
    expect(locks).toEqual(["exclusive", "shared", "shared"]);
  });

  test("takes it at most once for each of two assertions that contradict each other", async () => {
    const { one, locks } = noting();
    const tenant = await lineage.tenant();
    for (let second = 0; second < 10; second += 1) {
      await one.send(tenant, described(second % 2 === 0 ? "even" : "odd", second));
    }
    expect(locks.filter((how) => how === "shared").length).toBeLessThanOrEqual(2);
  });

  test("does not take it for an assertion that was only kept", async () => {
    const { one, locks } = noting();
    const waiting = await lineage.tenant("NEW");
    await one.send(waiting, described("one", 1));
    await one.send(waiting, described("one", 2));
    await one.ingest.makeReady(waiting);
    locks.length = 0;
    await one.send(waiting, described("one", 3));
    expect(locks).toEqual(["exclusive"]);
  });
});
