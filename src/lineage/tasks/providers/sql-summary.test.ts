/** The built-in summary of statements: what it says of real ones, and that nothing makes it break or hang. */
import { describe, expect, test } from "vitest";
import { summariseSql } from "./sql-summary.ts";

test.each([
  [
    `insert into dw.daily
     select o.day, sum(o.amount) as total, count(*) from ods.orders o join ods.customers c on o.customer_id = c.id
     where o.status = 'paid' and c.region in ('a', 'b') group by o.day`,
    "Reads ods.orders, ods.customers; joins on o.customer_id = c.id; filters by o.status, c.region; aggregates sum(o.amount), count(*); groups by o.day; writes dw.daily.",
    ["insert", "join", "aggregation", "daily", "orders", "customers"],
  ],
  [
    `create table if not exists x.y as
     with t as (select * from a), u(z) as (select 1 from b)
     select t.*, row_number() over (partition by k order by d) from t, u, c left join d using (id, k)
     where extract(year from d.day) = 2024 and exists (select 1 from e where e.id = d.id)`,
    "Reads a, b, c, d, e; joins on id, k; filters by d.day, e.id, d.id; writes x.y.",
    ["ctas", "join", "window", "cte", "y", "a", "b", "c", "d", "e"],
  ],
  [
    "MERGE INTO tgt t USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.v = s.v WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "Reads src; joins on t.id = s.id; writes tgt.",
    ["merge", "tgt", "src"],
  ],
  [
    "INSERT OVERWRITE TABLE a.b PARTITION (dt = '1') SELECT left(x, 3) FROM c UNION ALL SELECT y FROM d",
    "Reads c, d; writes a.b.",
    ["insert", "union", "b", "c", "d"],
  ],
  [
    "delete from `p.d.t` where x is not distinct from 'it''s' -- from nothing",
    "Filters by x; deletes from p.d.t.",
    ["delete", "t"],
  ],
  [
    "update a set b = (select max(c) from d) where e > 1",
    "Reads d; filters by e; aggregates max(c); writes a.",
    ["update", "aggregation", "a", "d"],
  ],
  ["insert into t select 1 from s on conflict (id) do nothing", "Reads s; writes t.", ["insert", "t", "s"]],
  [
    "create or replace view v as select a from t1 natural join t2",
    "Reads t1, t2; writes v.",
    ["view", "join", "v", "t1", "t2"],
  ],
  ['select "from" from "My Table"', "Reads My Table.", ["select", "my table"]],
  ["select $$ from nowhere $$ from a /* from b */", "Reads a.", ["select", "a"]],
  ["drop table if exists a.b", "Drops a.b.", ["drop", "b"]],
  ["select 1", "Runs a statement that names no table.", ["select"]],
  ["", "Runs a statement that names no table.", ["statement"]],
])("of %s", (sql, summary, tags) => {
  expect(summariseSql(sql)).toEqual({ summary, tags });
});

describe("any text", () => {
  test.each([
    "(",
    ")",
    "'",
    '"',
    "/*",
    "$a$",
    "from a,",
    "from (",
    "x(from ",
    "sum(",
    "as (",
    "(a) as (",
    "where a (select ",
    "join a on b = c and ",
    "merge using ",
    "a.",
  ])("made of %s is summarised in no time", (part) => {
    const begun = performance.now();
    const { summary, tags } = summariseSql(part.repeat(16_000 / part.length));
    expect(performance.now() - begun).toBeLessThan(1_000);
    expect(summary.length).toBeLessThan(5_000);
    expect(tags.length).toBeLessThanOrEqual(24);
  });

  test("that is cut off anywhere still gets a summary", () => {
    const sql = "insert into t select a, sum(b) from s join r on s.x = r.x where a = 'x''y' and f(g) > 1 group by a";
    for (let length = 0; length <= sql.length; length += 1)
      expect(summariseSql(sql.slice(0, length)).summary).toMatch(/\.$/);
  });
});
