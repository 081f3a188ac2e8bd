/** Times at the edge of windows, records that come late, and places in the queue that several processes share. */
import { describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startMillrace } from "../../../test/millrace.ts";
import { signal, until } from "../../../test/until.ts";
import { endOf } from "../harvest.fixture.ts";
import { type Asked, correct, itemsOf, type Said, type TestItem, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

function at(id: string, updated: string): TestItem {
  return { id, updated };
}

/** A source that filters with inclusive bounds, in seconds. */
function inclusive(items: readonly TestItem[]) {
  return ({ query }: Asked): Said => {
    const [from, last] = [Date.parse(query.get("from") ?? ""), Date.parse(query.get("until") ?? "")];
    const found = items.filter(({ updated }) => {
      const second = Math.floor(Date.parse(updated) / 1_000) * 1_000;
      return second >= from && second <= last;
    });
    return { body: { total: found.length, items: found.slice(Number(query.get("offset"))) } };
  };
}

const SECONDS = {
  http: { query: { from: "${window.from}", until: "${window.until}", offset: "${page.offset}" } },
  window: { granularity: "PT1S", format: "iso", align: "hour", minWindow: "PT1H" },
};

describe("a record at the edge of two windows", () => {
  test("belongs to one of them, also at the last millisecond", async () => {
    const items = [
      at("start", "2026-08-01T00:00:00.000Z"),
      at("last", "2026-08-01T23:59:59.999Z"),
      at("midnight", "2026-08-02T00:00:00.000Z"),
      at("end", "2026-08-03T00:00:00.000Z"),
    ];
    const source = await harvests.source(inclusive(items), SECONDS);
    const ended = await harvests.harvest(source, 2);
    expect(ended).toMatchObject({
      status: "COMPLETE",
      reconciliation: { expected: 3, received: 3, inserted: 3, updated: 0, unchanged: 0 },
    });
    expect(await harvests.slices(ended.planId)).toMatchObject([
      { day: "2026-08-01", received: 2 },
      { day: "2026-08-02", received: 1 },
    ]);
    expect(await harvests.keys(source)).toEqual(["last", "midnight", "start"]);
  });

  test("comes late, and is there after the window was harvested again, while the watermark stays", async () => {
    const items = itemsOf(3);
    const source = await harvests.source(inclusive(items), SECONDS);
    await harvests.harvest(source);
    const watermark = () =>
      database.query("select cursor_value, updated_at from harvest.ing_cursor where provenance_code = $1", [source]);
    const before = await watermark();
    items.push(at("late", "2026-08-01T00:00:00.000Z"));
    expect(await harvests.harvest(source)).toMatchObject({
      status: "COMPLETE",
      reconciliation: { received: 4, inserted: 1, unchanged: 3 },
    });
    expect(await harvests.keys(source)).toContain("late");
    expect(before).toHaveLength(1);
    expect(await watermark()).toEqual(before);
  });
});

describe("two processes", () => {
  test("run no more tasks of a partition at once than its definition allows, and every slice once", async () => {
    const other = await startMillrace(database, {
      env: {
        MILLRACE_ROLES: "worker",
        MILLRACE_HARVEST_ALLOW_PRIVATE: harvests.server.host,
        MILLRACE_SECRET_KEY: "0".repeat(64),
      },
    });
    onTestFinished(() => other.app.stop());
    let open = 0;
    let most = 0;
    const { promise, resolve } = signal();
    const answer = correct(Array.from({ length: 24 }, (_, day) => itemsOf(1, dayOf(day))).flat());
    const script = async (request: Asked): Promise<Said> => {
      open += 1;
      most = Math.max(most, open);
      if (most >= 3) setTimeout(resolve, 100); // Time for others to come as well.
      await promise;
      const said = await answer(request);
      open -= 1;
      return said;
    };
    const source = await harvests.source(script, { budget: { concurrency: 3 } });
    const ended = await harvests.harvest(source, 24);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 24, inserted: 24 } });
    expect(most).toBe(3);
    expect(harvests.server.asked(source)).toHaveLength(24);
    const sessions = await database.query<{ n: number }>(
      "select count(*)::int as n from kernel.session where expires_at > now()",
    );
    expect(sessions[0]?.n).toBeGreaterThanOrEqual(2);
  });

  test("and a source that answers nothing does not hold up another one", async () => {
    const { promise, resolve } = signal();
    const stuck = await harvests.source(async () => {
      await promise;
      return { body: { total: 0, items: [] } };
    });
    const waiting = await harvests.plan(stuck, 40);
    await until(() => harvests.server.asked(stuck).length === 8, "its partition to be full");
    const source = await harvests.source(correct(itemsOf(10)));
    expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
    expect(harvests.server.asked(stuck)).toHaveLength(8);
    resolve();
    expect(await endOf(harvests.api, waiting)).toMatchObject({ status: "COMPLETE" });
  });
});

function dayOf(index: number): string {
  return new Date(Date.UTC(2026, 7, 1 + index)).toISOString().slice(0, 10);
}
