/** Windows of sources that do not filter by time: their list is read as far as the window needs, and filtered here. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { endOf, plan } from "../harvest.fixture.ts";
import { type Asked, itemsOf, type Script, type TestItem, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

const ITEMS = ["2026-08-01", "2026-08-02", "2026-08-03", "2026-08-04"].flatMap((day) => itemsOf(25, day));
const offsetOf = ({ query }: Asked) => Number(query.get("offset"));

/** A list without a filter, with the number of all its records. */
function listOf(items: readonly TestItem[]): Script {
  return (request) => ({
    body: { total: items.length, items: items.slice(offsetOf(request), offsetOf(request) + 10) },
  });
}

const unfiltered = (order: "ascending" | "descending") => ({
  http: { query: { offset: "${page.offset}", size: "${page.size}" } },
  window: { supportsUpdatedSince: false, monotone: true, order },
});
const NEWEST_FIRST = ITEMS.toReversed();

describe("a list that is", () => {
  test.each([
    ["descending", NEWEST_FIRST, [0, 10, 20, 30, 40, 50, 60, 70]],
    ["ascending", ITEMS, [0, 10, 20, 30, 40, 50]],
  ] as const)("%s is read as far as a window needs, and only its records are stored", async (order, items, offsets) => {
    const source = await harvests.source(listOf(items), unfiltered(order));
    const window = { from: "2026-08-02", to: "2026-08-03" };
    const ended = await endOf(harvests.api, (await plan(harvests.api, { source, window })).planId);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: null, received: 25, inserted: 25 } });
    expect(await harvests.keys(source)).toEqual(itemsOf(25, "2026-08-02").map(({ id }) => id));
    expect(harvests.server.asked(source).map(offsetOf)).toEqual(offsets);
  });

  test("filtered here is harvested and backfilled whole", async () => {
    const source = await harvests.source(listOf(NEWEST_FIRST), unfiltered("descending"));
    for (const [operation, window] of [
      ["HARVEST", { from: "2026-08-03", to: "2026-08-05" }],
      ["BACKFILL", { from: "2026-08-01", to: "2026-08-03" }],
    ] as const) {
      const { planId } = await plan(harvests.api, { source, operation, window });
      expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE", reconciliation: { inserted: 50 } });
    }
    expect(await harvests.keys(source)).toEqual(ITEMS.map(({ id }) => id));
  });

  test("not in the declared order leaves the window incomplete, with the reason", async () => {
    const source = await harvests.source(listOf(ITEMS), unfiltered("descending"));
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({
      status: "FAILED",
      gapWindows: [{ status: "INCOMPLETE", reason: expect.stringContaining("as `window.order` says") }],
    });
  });

  test("in order although records are inserted while it is read", async () => {
    let isLater = false;
    const source = await harvests.source((request) => {
      const added = isLater ? [...itemsOf(3, "2026-08-05").toReversed(), ...NEWEST_FIRST] : NEWEST_FIRST;
      isLater ||= offsetOf(request) === 20;
      return listOf(added)(request);
    }, unfiltered("descending"));
    expect(await harvests.harvest(source, 4)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 100 } });
  });

  test("of records without a time quarantines them", async () => {
    const { updated: _, ...timeless } = { id: "timeless", updated: "" };
    const source = await harvests.source(
      listOf([timeless as TestItem, ...itemsOf(5).toReversed()]),
      unfiltered("descending"),
    );
    expect(await harvests.harvest(source)).toMatchObject({
      status: "COMPLETE",
      reconciliation: { received: 5, quarantined: 1 },
    });
  });
});
