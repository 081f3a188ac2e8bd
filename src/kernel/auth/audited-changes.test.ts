import { describe, expect, test } from "vitest";
import { differences } from "../json/differences.ts";
import { auditedChanges } from "./audited-changes.ts";

const changesOf = (from: object, to: object) => auditedChanges(differences(from, to));

describe("the changes in an audit row", () => {
  test("are the fields that differ, before and after; one side is absent where the field was not there", () => {
    const from = { sql: "select 1", retry: { maxAttempts: 2 }, grain: "day", same: [1] };
    const to = { sql: "select 2", retry: { maxAttempts: 3 }, chain: null, same: [1] };
    expect(changesOf(from, to)).toEqual({
      changes: [
        { field: "sql", from: "select 1", to: "select 2" },
        { field: "retry.maxAttempts", from: 2, to: 3 },
        { field: "chain", to: null },
        { field: "grain", from: "day" },
      ],
    });
  });

  test.each(["AWS_SECRET_ACCESS_KEY", "private_key", "DB_PASS", "PGPASSWORD", "credentials", "secret"])(
    "have no value of %s in an environment, nor of what is below it",
    (name) => {
      const { changes } = auditedChanges([
        { field: `nodes.a.cfg.env.${name}`, from: "open", to: "sesame" },
        { field: "nodes.b.cfg.env", to: { [name]: { value: ["sesame"] }, PATH: "/bin" } },
      ]);
      expect(changes).toEqual([
        { field: `nodes.a.cfg.env.${name}`, from: "***", to: "***" },
        { field: "nodes.b.cfg.env", to: { [name]: { value: ["***"] }, PATH: "/bin" } },
      ]);
    },
  );

  test("have no value of a field that may hold a secret, at any depth", () => {
    const headers = (key: string) => ({ Authorization: `Bearer ${key}`, "X-Api-Key": key, Accept: "text/csv" });
    const added = { cfg: { headers: headers("sesame"), clientSecret: "sesame", tokens: 3 } };
    const { changes } = changesOf(
      { headers: headers("open"), credentials: { shop: { secret: "SHOP_OLD" } } },
      { headers: headers("sesame"), credentials: { shop: { secret: "SHOP" } }, added: [added] },
    );
    expect(JSON.stringify(changes)).not.toMatch(/sesame|open/);
    expect(changes).toEqual([
      { field: "headers.Authorization", from: "***", to: "***" },
      { field: "headers.X-Api-Key", from: "***", to: "***" },
      // The name of a stored secret.
      { field: "credentials.shop.secret", from: "SHOP_OLD", to: "SHOP" },
      {
        field: "added",
        to: [
          {
            cfg: {
              headers: { Authorization: "***", "X-Api-Key": "***", Accept: "text/csv" },
              clientSecret: "***",
              tokens: 3,
            },
          },
        ],
      },
    ]);
  });

  test("of a long value have the part that differs, and are storable", () => {
    const text = (middle: string) => `${"😀".repeat(3_000)}${middle}${"😀".repeat(3_000)}`;
    const [change] = changesOf({ sql: text("where a") }, { sql: text("where b") }).changes;
    for (const [side, middle] of [[change?.from, "where a"] as const, [change?.to, "where b"] as const]) {
      expect(side).toContain(middle);
      expect(String(side).length).toBeLessThan(2_010);
      expect(String(side).isWellFormed()).toBe(true);
      expect(side).toMatch(/^… .* …$/u);
    }
  });

  test("are limited in number and in all, and say how many are left out", () => {
    const fields = (count: number, length: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, "x".repeat(length)]));
    expect(changesOf({}, fields(50, 1))).not.toHaveProperty("moreChanges");
    expect(changesOf({}, fields(60, 1))).toMatchObject({ moreChanges: 10, changes: { length: 50 } });
    const long = changesOf({}, fields(30, 1_900));
    expect(JSON.stringify(long).length).toBeLessThan(21_000);
    expect(long.changes.length + (long.moreChanges ?? 0)).toBe(30);
  });
});
