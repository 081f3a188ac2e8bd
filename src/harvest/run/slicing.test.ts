/** Slices that are ranges of pages or of ids, for sources that do not filter by time. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { endOf, plan } from "../harvest.fixture.ts";
import { cancelPlan, lockTasksOf } from "../store/plans/plan-ends.ts";
import { type Script, type ScriptedHarvests, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests: ScriptedHarvests = useScripted(database);

const idsOf = (count: number) => Array.from({ length: count }, (_, index) => `item-${String(index).padStart(4, "0")}`);
const ALL = { query: { offset: "${page.offset}", size: "${page.size}" } };
const whole = { enumerator: "ScanByCursor", window: undefined, response: { updatedAtPath: undefined } };

interface Seen {
  status: string;
  part: Record<string, unknown> | null;
  received: number;
  isPart: boolean;
}
const seen = (planId: string) =>
  database.query<Seen>(
    `select status_code as status, part, received::int, root_slice_id is not null as "isPart"
     from harvest.ing_plan_slice where plan_id = $1 order by slice_id`,
    [planId],
  );

/** Plans all of the endpoint, which knows no time, and answers the plan when it has ended. */
async function harvestAll(source: string) {
  const { api } = harvests;
  const { body } = await api.post<{ planId: string }>("/api/v1/harvest/plans", { source });
  return endOf(api, body.planId);
}

describe("slices by page", () => {
  /** A list that `items` answers anew for each page. */
  const listOf =
    (items: () => readonly string[]): Script =>
    ({ query }) => {
      const [offset, size] = [Number(query.get("offset")), Number(query.get("size"))];
      const all = items();
      return { body: { total: all.length, items: all.slice(offset, offset + size).map((id) => ({ id })) } };
    };
  const byPage = { ...whole, http: ALL, slicing: { by: "PAGE", pages: 3 } };

  test("a long list is read in parts side by side, and has every record once", async () => {
    const ids = idsOf(95);
    const source = await harvests.source(
      listOf(() => ids),
      byPage,
    );
    const ended = await harvestAll(source);
    expect(ended).toMatchObject({
      status: "COMPLETE",
      slices: { COMPLETE: 1 },
      reconciliation: { expected: 95, received: 95, inserted: 95, repeated: 0, gaps: 0 },
    });
    const parts = (await seen(ended.planId)).filter(({ isPart }) => isPart);
    expect(
      parts.map(({ part, received }) => [(part?.["pages"] as { from: number } | undefined)?.from, received]),
    ).toEqual([
      [1, 30],
      [4, 30],
      [7, 30],
      [10, 5],
    ]);
    expect(await harvests.keys(source)).toEqual(ids);
    const offsets = harvests.server.asked(source).map(({ query }) => Number(query.get("offset")));
    expect(Math.max(...offsets)).toBe(90);
  });

  test.each([0, 1])("a list that is asked for by page numbers from %i on is read in parts too", async (base) => {
    const ids = idsOf(65);
    const list = listOf(() => ids);
    const source = await harvests.source(
      (request) => {
        const page = Number(request.query.get("page")) - base;
        request.query.set("offset", String(page * Number(request.query.get("size"))));
        return list(request);
      },
      {
        ...byPage,
        http: { query: { page: "${page.number}", size: "${page.size}" } },
        pagination: { type: "PAGE", base },
        slicing: { by: "PAGE", pages: 3 },
      },
    );
    const ended = await harvestAll(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 65, repeated: 0, gaps: 0 } });
    const parts = (await seen(ended.planId)).filter(({ isPart }) => isPart);
    expect(parts.map(({ received }) => received)).toEqual([30, 30, 5]);
    expect(await harvests.keys(source)).toEqual(ids);
    const pages = new Set(harvests.server.asked(source).map(({ query }) => Number(query.get("page"))));
    expect([...pages].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6].map((page) => page + base));
  });

  test("parts are not added while the tasks of the plan are cancelled, and their slice is not locked meanwhile", async () => {
    const [asked, answered] = [signal(), signal()];
    const list = listOf(() => idsOf(95));
    const source = await harvests.source(async (request) => {
      asked.resolve();
      await answered.promise;
      return list(request);
    }, byPage);
    const { planId } = await plan(harvests.api, { source });
    await asked.promise;
    await database.db.tx(async (tx) => {
      await lockTasksOf(tx, planId);
      answered.resolve();
      await until(
        async () =>
          (
            await database.query(
              "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'",
            )
          ).length > 0,
        "the end of the slice to wait",
      );
      expect((await cancelPlan(tx, planId, "cancelled by a test"))?.tasks).toBe(1);
    });
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "CANCELLED", slices: { CANCELLED: 1 } });
    await until(async () => (await harvests.inFlight()) === 0, "the run to end");
    expect(await seen(planId)).toHaveLength(1);
  });

  test("a short list is one slice", async () => {
    const ids = idsOf(30);
    const source = await harvests.source(
      listOf(() => ids),
      byPage,
    );
    expect(await harvestAll(source)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 30 } });
    expect(harvests.server.asked(source)).toHaveLength(3);
  });

  test("a record that no part has makes the list INCOMPLETE, although every part has as many as it should", async () => {
    const source = await harvests.source(
      listOf(() => idsOf(60).map((id, index) => (index === 59 ? "item-0000" : id))),
      byPage,
    );
    expect(await harvestAll(source)).toMatchObject({
      status: "FAILED",
      gapWindows: [{ reason: "the source announced 60 records, and its 2 parts have 59" }],
    });
  });
});

describe("slices by id", () => {
  /** A source of numbered records that answers a range of numbers, at most 20 of them. */
  const numbered =
    (numbers: readonly number[]): Script =>
    ({ query }) => {
      const [first, last] = (query.get("ids") ?? "0-0").split("-").map(Number) as [number, number];
      const found = numbers.filter((number) => number >= first && number <= last);
      const offset = Number(query.get("offset"));
      const page = found.slice(offset, offset + Number(query.get("size")));
      return { body: { total: found.length, items: page.map((number) => ({ id: String(number) })) } };
    };
  const numbers = Array.from({ length: 70 }, (_, index) => (index < 40 ? index + 1 : index * 10));
  const byNumber = {
    ...whole,
    http: { query: { ...ALL.query, ids: "${parts.number}" } },
    slicing: {
      by: "ID",
      size: 250,
      ids: { name: "number", type: "NUMBER", from: 1, until: 1_000, fragment: "${range.from}-${range.until}" },
    },
  };

  test("a plan has a slice for each range of numbers, and together they have every record", async () => {
    const source = await harvests.source(numbered(numbers), byNumber);
    const ended = await harvestAll(source);
    expect(ended).toMatchObject({ status: "COMPLETE", slices: { COMPLETE: 4 }, reconciliation: { received: 70 } });
    expect((await seen(ended.planId)).map(({ part }) => part?.["number"])).toEqual([
      { from: 1, until: 250 },
      { from: 251, until: 500 },
      { from: 501, until: 750 },
      { from: 751, until: 1_000 },
    ]);
  });

  test("a range over the cap is halved, and its parts are verified", async () => {
    const source = await harvests.source(numbered(numbers), { ...byNumber, pagination: { maxPage: 2 } });
    const ended = await harvestAll(source);
    expect(ended).toMatchObject({ status: "COMPLETE", slices: { COMPLETE: 4 }, reconciliation: { received: 70 } });
    expect((await seen(ended.planId)).filter(({ isPart }) => isPart).length).toBeGreaterThan(1);
    expect((await harvests.keys(source)).length).toBe(70);
  });

  /** A source of texts that answers those which a request selects, in pages. */
  const texts =
    (all: readonly string[], isSelected: (selection: string, text: string) => boolean): Script =>
    ({ query }) => {
      const found = all.filter((text) => isSelected(query.get("ids") ?? "", text));
      const offset = Number(query.get("offset"));
      const items = found.slice(offset, offset + Number(query.get("size"))).map((id) => ({ id }));
      return { body: { total: found.length, items } };
    };
  const by = (ids: { name: string; [field: string]: unknown }, size?: number) => ({
    ...whole,
    http: { query: { ...ALL.query, ids: `\${parts.${ids.name}}` } },
    slicing: { by: "ID", ids, ...(size === undefined ? {} : { size }) },
  });
  const partsOf = async (planId: string, name: string) =>
    (await seen(planId)).map(({ part, received }) => [part?.[name], received]);

  test("a plan has a slice for so many days each, the last one what is left", async () => {
    const days = Array.from({ length: 31 }, (_, index) => `2026/01/${String(index + 1).padStart(2, "0")}`);
    const isBetween = (selection: string, day: string) => {
      const [from = "", last = ""] = selection.split("-");
      return day >= from && day <= last;
    };
    const source = await harvests.source(
      texts(days, isBetween),
      by(
        {
          name: "entered",
          type: "DATE",
          from: "2026-01-01",
          until: "2026-01-31",
          format: "yyyy/MM/dd",
          fragment: "${range.from}-${range.until}",
        },
        14,
      ),
    );
    const ended = await harvestAll(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 31, gaps: 0 } });
    expect(await partsOf(ended.planId, "entered")).toEqual([
      [{ from: "2026-01-01", until: "2026-01-14" }, 14],
      [{ from: "2026-01-15", until: "2026-01-28" }, 14],
      [{ from: "2026-01-29", until: "2026-01-31" }, 3],
    ]);
    expect(await harvests.keys(source)).toEqual(days);
  });

  /** `ab*` is all that begins with it; `ab!c,d` leaves out what goes on with one of these. */
  const begins = (selection: string, text: string) => {
    const [, prefix = "", mark, others = ""] = /^(\w*)([*!])(.*)$/.exec(selection) ?? [];
    return text.startsWith(prefix) && (mark === "*" || !others.split(",").some((other) => text.startsWith(other)));
  };
  const REST = '${range.value}!${range.values.join(",")}';

  test("a plan has a slice for each prefix and one for the rest, and a prefix over the cap is lengthened", async () => {
    const all = ["a", ...["aa", "ab", "ac", "b", "z"].flatMap((head) => idsOf(8).map((id) => head + id))];
    const prefix = {
      name: "code",
      type: "PREFIX",
      values: ["a", "b"],
      depth: 2,
      fragment: "${range.value}*",
      rest: REST,
    };
    const source = await harvests.source(texts(all, begins), { ...by(prefix), pagination: { maxPage: 2 } });
    const ended = await harvestAll(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 41, gaps: 0 } });
    expect(await partsOf(ended.planId, "code")).toEqual([
      [{ value: "a" }, 25],
      [{ value: "b" }, 8],
      [{ rest: "" }, 8],
      [{ value: "aa" }, 8],
      [{ value: "ab" }, 8],
      [{ rest: "a" }, 9],
    ]);
    expect(await harvests.keys(source)).toEqual([...all].sort());
  });

  test("a plan has a slice for what has none of the listed values", async () => {
    const all = ["book", "article", "other"].flatMap((head) => idsOf(4).map((id) => head + id));
    const values = {
      name: "kind",
      type: "VALUES",
      values: ["book", "article"],
      fragment: "${range.value}*",
      rest: REST,
    };
    const source = await harvests.source(texts(all, begins), by(values));
    const ended = await harvestAll(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 12, gaps: 0 } });
    expect(await partsOf(ended.planId, "kind")).toEqual([
      [{ value: "book" }, 4],
      [{ value: "article" }, 4],
      [{ rest: "" }, 4],
    ]);
    expect(await harvests.keys(source)).toEqual([...all].sort());
  });

  test("a known set is asked for in groups, and a dry run shows them", async () => {
    const script: Script = ({ query }) => {
      const items = (query.get("ids") ?? "").split(",").map((id) => ({ id }));
      return { body: { total: items.length, items: Number(query.get("offset")) === 0 ? items : [] } };
    };
    const source = await harvests.source(script, {
      ...whole,
      http: { query: { ...ALL.query, ids: "${parts.journal}" } },
      slicing: {
        by: "ID",
        size: 2,
        ids: { name: "journal", type: "VALUES", values: ["a", "b", "c"], fragment: '${range.values.join(",")}' },
      },
    });
    const { body } = await harvests.api.post<Record<string, unknown>>("/api/v1/harvest/plans?dryRun=true", { source });
    expect(body).toMatchObject({
      slices: 2,
      slicedBy: "ID",
      parts: [{ journal: { values: ["a", "b"] } }, { journal: { values: ["c"] } }],
    });
    expect(await harvestAll(source)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 3 } });
    expect(await harvests.keys(source)).toEqual(["a", "b", "c"]);
  });
});
