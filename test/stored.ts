/** Everything that a database stores, as one sum per table, for tests that nothing has changed. */
import type { TestDatabase } from "./database.ts";

/** Sessions aside, which are renewed all the time, and when a key was last used. */
export async function stored(database: TestDatabase): Promise<Record<string, string | undefined>> {
  const tables = await database.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname in ('kernel', 'tracking', 'chains', 'arrivals', 'webhooks', 'lineage') and tablename <> 'session' order by 1`,
  );
  const sums = tables.map(async ({ name }) => {
    const [row] = await database.query<{ sum: string }>(
      `select md5(string_agg(content, '|' order by content)) as sum
       from (select (to_jsonb(t) - 'used_at')::text as content from ${name} t) rows`,
    );
    return [name, row?.sum] as const;
  });
  return Object.fromEntries(await Promise.all(sums));
}
