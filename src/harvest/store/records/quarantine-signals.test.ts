/** Which quarantined ids an update asks for, and that it does not read what asks for nothing any more. */
import { afterAll, beforeEach, expect, test } from "vitest";
import { useDatabase } from "../../../../test/database.ts";
import { openRecordingDb, type RecordingDb } from "../../../../test/plans.ts";
import { makeSource, type TestSlice, type TestSource } from "../../landing/windows.fixture.ts";
import { quarantinedOf, quarantineGroups } from "../../quarantine.ts";
import { closeDecided, newlyQuarantined, quarantinedKeys } from "./quarantine-signals.ts";

const IDS = 12_000;
/** Measured 16 and 18. A scan of what is open reads 24,000 and more. */
const PAGES_MAX = 100;

const database = useDatabase();
let source: TestSource;
let old: TestSlice;
let today: TestSlice;
let recording: RecordingDb | undefined;
afterAll(() => recording?.db.close());

const keysOf = (...numbers: number[]) => numbers.map((n) => `id ${String(n).padStart(6, "0")}`);
const all = Array.from({ length: IDS }, (_, index) => index + 1);
const asked = (exprProtoHash: string | null, limit = 10_001, key = "works") =>
  quarantinedKeys(database.db, { endpointId: source.endpointId, key }, { exprProtoHash, limit });
const close = (hash = "today") => database.db.tx((tx) => closeDecided(tx, source.endpointId, hash));
const came = (...numbers: number[]) => source.harvest(keysOf(...numbers).map((key) => ({ key, title: "came" })));
/** How many rows are as the condition says. */
const count = async (where: string) => {
  const of = "select count(*)::int as n from harvest.quarantine where endpoint_id = $1 and";
  return (await database.query<{ n: number }>(`${of} ${where}`, [source.endpointId]))[0]?.n;
};

async function quarantine({ sliceId }: TestSlice, hash: string | null, where: string): Promise<void> {
  await database.query(
    `insert into harvest.quarantine (endpoint_id, plan_month, slice_id, generation, batch_no, expr_proto_hash, item_key, reason_code,
       reason, fragment)
     select $1, '2026-08-01', $2::int8, 1, 1, $3, 'id ' || lpad(n::text, 6, '0'), 'MISSING_FIELD', 'no text', '{}'
     from generate_series(1, $4::int) n where ${where}`,
    [source.endpointId, sliceId, hash, IDS],
  );
}

beforeEach(async () => {
  source = await makeSource(database);
  [old, today] = [await source.harvest([]), await source.harvest([])];
  for (const [{ planId }, hash] of [
    [old, "old"],
    [today, "today"],
  ] as const) {
    await database.query("update harvest.ing_plan set expr_proto_hash = $2 where plan_id = $1", [planId, hash]);
  }
});

test.each(["old", null])(
  "are those whose newest row another expression has read, where rows have the hash %s",
  async (hash) => {
    await quarantine(old, hash, "true");
    await quarantine(today, hash && "today", "n not in (1, 5000, 12000)");
    for (const _ of ["before", "and after old rows are closed"]) {
      expect(await asked("today")).toEqual(keysOf(1, 5000, 12_000));
      expect(await asked("today", 2)).toHaveLength(2);
      expect(await asked("today", 10, "works:1f2e3d4c")).toEqual([]);
      expect(await asked("old", 20_000)).toEqual(
        all.filter((n) => ![1, 5000, 12_000].includes(n)).map((n) => keysOf(n)[0]),
      );
      expect(await asked(null)).toEqual(keysOf(...all.slice(0, 10_001)));
      // Several times, because one plan looks at 20,000 rows.
      for (let plan = 0; plan < 3; plan += 1) await close();
    }
    expect(await count("is_superseded")).toBe(IDS - 3);
  },
);

test("are none that have come since, which are resolved once, and could be quarantined anew", async () => {
  await quarantine(old, "old", "n <= 3");
  await quarantine(today, "today", "n = 4");
  await came(2, 4);
  const incoming = { reason_code: "MISSING_FIELD", reason: "no text", expression: null, fragment: "{}" };
  const items = keysOf(3, 4).map((item_key) => ({ ...incoming, item_key }));
  expect(await newlyQuarantined(database.db, source, "today", items)).toEqual(items);
  expect(await newlyQuarantined(database.db, source, "old", items)).toEqual(items.slice(1));
  for (const _ of ["before", "and after they are resolved"]) {
    expect(await asked("today")).toEqual(keysOf(1, 3));
    expect(await asked(null)).toEqual(keysOf(1, 3));
    await close();
  }
  expect(await count("resolved_at is not null")).toBe(1);
});

test("are found without reading what the present expression has read, however much that is", async () => {
  recording = openRecordingDb(database.connection, "harvest.quarantine.");
  const { db, calls, explainLast } = recording;
  const namespace = { endpointId: source.endpointId, key: "works" };
  const turn = async () => {
    await db.tx((tx) => closeDecided(tx, source.endpointId, "today"));
    return quarantinedKeys(db, namespace, { exprProtoHash: "today", limit: 10_001 });
  };
  await database.query("alter table harvest.quarantine set (autovacuum_enabled = false)");
  await database.query("analyze");
  for (let round = 0; round < 12; round += 1) await turn(); // Postgres may choose a generic plan after five executions.
  await quarantine(old, "old", "n > 1");
  await quarantine(today, "today", "true");
  await quarantine(old, "old", "n = 1");
  for (let round = 0; round < 3; round += 1) expect(await turn()).toEqual(keysOf(1));
  await database.query("vacuum harvest.quarantine");
  calls.clear();
  await turn();
  expect(calls.size).toBe(2);
  for (const name of calls.keys()) {
    const { nodes, pages } = await explainLast(name);
    expect(nodes, name).not.toContain("Seq Scan");
    expect(pages, name).toBeLessThan(PAGES_MAX);
  }
});

test("are listed and counted from the newest on, and only so many rows are looked at", async () => {
  await quarantine(old, "old", "true");
  expect(await quarantineGroups(database.db, source.source)).toMatchObject({ items: [{ records: 10_000 }], cut: true });
  const listed = (code: string, before?: string) =>
    quarantinedOf(database.db, source.endpointId, { before, code, expression: "", isOpen: true }, 2);
  expect(await listed("MISSING_FIELD")).toMatchObject({ items: keysOf(12_000, 11_999).map((key) => ({ key })) });
  const rare = await listed("TOO_LARGE");
  expect(rare).toEqual({ items: [], next: expect.stringMatching(/^\d+$/) as string });
  expect(await listed("TOO_LARGE", rare.next ?? "")).toEqual({ items: [], next: null });
  await quarantine(today, "today", "n = 12000");
  expect((await listed("MISSING_FIELD")).items).toMatchObject(keysOf(12_000, 11_999).map((key) => ({ key })));
});
