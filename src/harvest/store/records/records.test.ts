import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../../test/database.ts";
import { until } from "../../../../test/until.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { recordChanges } from "../../records.ts";
import { CHANGES } from "./record-feed.ts";
import { type IncomingRecord, putRecords, type RecordOrigin } from "./records.ts";

const database = useDatabase();
let endpoints = 0;

function origin(endpointId: number, batchNo = 1): RecordOrigin {
  return { endpointId, planMonth: "2026-11-01", sliceId: "1", generation: 1, batchNo };
}

function record(key: string, text: string, more: Partial<IncomingRecord> = {}): IncomingRecord {
  const hash = Buffer.from(text).toString("hex").padEnd(32, "0").slice(0, 32);
  return {
    item_key: key,
    content_hash: hash,
    source_time: null,
    provider_version: null,
    deleted: false,
    data: JSON.stringify({ text }),
    ...more,
  };
}

function put(endpointId: number, ...records: IncomingRecord[]) {
  return database.db.tx((tx) => putRecords(tx, origin(endpointId), records));
}

async function stored(endpointId: number) {
  return database.query<{ item_key: string; version: number; data: { text: string }; deleted: boolean }>(
    "select item_key, version, data, deleted from harvest.record where endpoint_id = $1 order by item_key",
    [endpointId],
  );
}

describe("a page of records", () => {
  test("is inserted, and comes again as unchanged", async () => {
    const id = ++endpoints;
    const page = [record("b", "two"), record("a", 'one "quoted" \\ {braces}, commas')];
    expect(await put(id, ...page)).toEqual({ inserted: 2, updated: 0, unchanged: 0, deleted: 0 });
    expect(await put(id, ...page)).toEqual({ inserted: 0, updated: 0, unchanged: 2, deleted: 0 });
    expect(await stored(id)).toEqual([
      { item_key: "a", version: 1, data: { text: 'one "quoted" \\ {braces}, commas' }, deleted: false },
      { item_key: "b", version: 1, data: { text: "two" }, deleted: false },
    ]);
  });

  test("changes what has another content and keeps the version that it replaces", async () => {
    const id = ++endpoints;
    await put(id, record("a", "one"), record("b", "same"));
    expect(await put(id, record("a", "two"), record("b", "same"), record("c", "new"))).toEqual({
      inserted: 1,
      updated: 1,
      unchanged: 1,
      deleted: 0,
    });
    expect((await stored(id))[0]).toMatchObject({ version: 2, data: { text: "two" } });
    expect(
      await database.query("select item_key, version, data from harvest.record_version where endpoint_id = $1", [id]),
    ).toEqual([{ item_key: "a", version: 1, data: { text: "one" } }]);
  });

  test("does not replace a record by an older one, but does by another of the same time", async () => {
    const id = ++endpoints;
    const day = (n: number) => new Date(Date.UTC(2026, 7, n));
    await put(id, record("a", "one", { source_time: day(2) }));
    expect(await put(id, record("a", "older", { source_time: day(1) }))).toMatchObject({ updated: 0, unchanged: 1 });
    expect(await put(id, record("a", "second edit", { source_time: day(2) }))).toMatchObject({ updated: 1 });
    expect((await stored(id))[0]).toMatchObject({ version: 2, data: { text: "second edit" } });
  });

  test.each([
    { older: "9", newer: "10" },
    { older: "v9", newer: "v10" },
    { older: "20260801123000123", newer: "20260801123000124" },
  ])(
    "replaces the version $older of the source by $newer of the same time, and not the other way",
    async (versions) => {
      const id = ++endpoints;
      const source_time = new Date(Date.UTC(2026, 7, 1));
      const one = (text: string, provider_version: string | null, more = {}) =>
        record("a", text, { source_time, provider_version, ...more });
      await put(id, one("first", versions.older));
      expect(await put(id, one("second", versions.newer))).toMatchObject({ updated: 1 });
      expect(await put(id, one("first", versions.older))).toMatchObject({ updated: 0, unchanged: 1 });
      // A later time decides before the version; without a version, or with the same, what was asked for later stays.
      expect(await put(id, one("edit", versions.newer))).toMatchObject({ updated: 1 });
      expect(await put(id, one("without", null))).toMatchObject({ updated: 1 });
      const later = { source_time: new Date(Date.UTC(2026, 7, 2)) };
      await put(id, one("again", versions.newer, later));
      expect(
        await put(id, one("later", versions.older, { source_time: new Date(Date.UTC(2026, 7, 3)) })),
      ).toMatchObject({
        updated: 1,
      });
      expect((await stored(id))[0]).toMatchObject({ version: 6, data: { text: "later" } });
    },
  );

  test.each(["1.10", "b7e23ec2"])("replaces the version 1.9 by %s and back: no order can be told", async (other) => {
    const id = ++endpoints;
    const one = (text: string, provider_version: string) => record("a", text, { provider_version });
    await put(id, one("first", "1.9"));
    expect(await put(id, one("second", other))).toMatchObject({ updated: 1 });
    expect(await put(id, one("third", "1.9"))).toMatchObject({ updated: 1 });
  });

  test("marks what the source deleted, and what it brings back", async () => {
    const id = ++endpoints;
    await put(id, record("a", "one"));
    expect(await put(id, record("a", "gone", { deleted: true }))).toMatchObject({ updated: 0, deleted: 1 });
    expect(await put(id, record("z", "gone", { deleted: true }))).toMatchObject({ inserted: 0, deleted: 1 });
    expect((await stored(id))[0]).toMatchObject({ deleted: true });
    expect(await put(id, record("a", "one"))).toMatchObject({ updated: 1, deleted: 0 });
    expect((await stored(id))[0]).toMatchObject({ deleted: false, version: 3 });
    // Some sources repeat the record as it was, with a flag.
    expect(await put(id, record("a", "one", { deleted: true }))).toMatchObject({ unchanged: 0, deleted: 1 });
  });

  test("of another transaction with the same keys neither doubles nor deadlocks", async () => {
    const id = ++endpoints;
    const keys = Array.from({ length: 50 }, (_, n) => `k${n}`);
    const pages = Array.from({ length: 6 }, (_, n) => {
      const shuffled = keys.toSorted((a, b) => ((a.charCodeAt(1) * (n + 7)) % 13) - ((b.charCodeAt(1) * (n + 7)) % 13));
      return put(id, ...shuffled.map((key) => record(key, `text ${n}`)));
    });
    const counts = await Promise.all(pages);
    expect(counts.reduce((sum, { inserted }) => sum + inserted, 0)).toBe(50);
    expect(await stored(id)).toHaveLength(50);
  });
});

describe("the feed of changes", () => {
  test("stops before a transaction that is still open, and misses nothing of it", async () => {
    const id = ++endpoints;
    let commit = () => {};
    const mayCommit = new Promise<void>((resolve) => {
      commit = resolve;
    });
    let begun = () => {};
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const early = database.db.tx(async (tx) => {
      await putRecords(tx, origin(id, 1), [record("early", "one")]);
      begun();
      await mayCommit;
    });
    await hasBegun;
    await put(id, record("late", "two")); // Begins later and commits first.
    const before = await recordChanges(database.db, id, { after: undefined, limit: 10 });
    expect(before.rows).toEqual([]);
    commit();
    await early;
    // Transactions of other databases hold the feed back as well.
    const rows = await until(async () => {
      const found = (await recordChanges(database.db, id, { after: before.next, limit: 10 })).rows;
      return found.length === 2 && found;
    }, "both changes");
    expect(rows.map(({ item_key }) => item_key)).toEqual(["early", "late"]);
  });

  test("is read page by page to the last change, and continues with the next", async () => {
    const id = ++endpoints;
    await put(id, ...["c", "a", "b"].map((key) => record(key, key)));
    await put(id, record("d", "d"));
    const seen: string[] = [];
    let after: string | undefined;
    await until(async () => {
      const { rows, next } = await recordChanges(database.db, id, { after, limit: 2 });
      seen.push(...rows.map(({ item_key }) => item_key));
      after = next;
      return seen.length >= 4;
    }, "four changes");
    expect(seen).toEqual(["a", "b", "c", "d"]);
    await put(id, record("b", "again"));
    const [change] = await until(async () => {
      const { rows } = await recordChanges(database.db, id, { after, limit: 2 });
      return rows.length > 0 && rows;
    }, "the next change");
    expect(change).toMatchObject({ item_key: "b", version: 2 });
  });

  test("is in the order of the numbers of transactions, also where they get another digit", async () => {
    const id = ++endpoints;
    for (const key of ["a", "b", "c", "d"]) await put(id, record(key, key));
    const xids = { a: "9", b: "10", c: "99", d: "100" };
    for (const [key, xid] of Object.entries(xids)) {
      await database.query("update harvest.record set change_xid = $3::xid8 where endpoint_id = $1 and item_key = $2", [
        id,
        key,
        xid,
      ]);
    }
    const seen: string[] = [];
    for (let after: string | undefined, pages = 0; pages < 4; pages += 1) {
      const { rows, next } = await recordChanges(database.db, id, { after, limit: 1 });
      seen.push(...rows.map(({ item_key }) => item_key));
      after = next;
    }
    expect(seen).toEqual(["a", "b", "c", "d"]);
  });

  test("refuses a position that it did not give", async () => {
    for (const after of ["x", "1.2.3", "99999999999999999999", "-1", ""]) {
      await expect(recordChanges(database.db, 1, { after, limit: 2 })).rejects.toThrow(/`after`/);
    }
  });

  test("reads as much of a long history as it answers", async () => {
    const id = ++endpoints;
    await database.query(
      `insert into harvest.record (endpoint_id, item_key, content_hash, plan_month, slice_id, generation, batch_no, data)
       select $1, 'k' || n, gen_random_uuid(), '2026-11-01', 1, 1, 1, '{}' from generate_series(1, 50000) n`,
      [id],
    );
    await put(id, record("last", "x"));
    const [{ xid }] = (await database.query(
      "select change_xid::text as xid from harvest.record where item_key = 'last'",
    )) as [{ xid: string }];
    await database.query("analyze harvest.record");
    const [row] = await database.db.rows(
      statement<{ "QUERY PLAN": [{ Plan: { "Shared Hit Blocks": number; "Shared Read Blocks": number } }] }>(
        "test.feed.explain",
        `explain (analyze, buffers, format json) ${CHANGES.text}`,
      ),
      [id, xid, "", 10],
    );
    const plan = row!["QUERY PLAN"][0].Plan;
    expect(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]).toBeLessThan(20);
  });
});
