/**
 * The physical limit of durable work on this server: one claim statement and one completion statement for each batch, over a
 * narrow table, with no owner, no fence and no guard.
 */
import { unnest } from "../src/kernel/data/batch.ts";
import { statement } from "../src/kernel/data/statement.ts";
import { type Contender, perSecond } from "./measure.ts";
import type { BenchPostgres } from "./postgres.ts";

export const BATCH = 100;
export const LOOPS = 4;

const CLAIM = statement<{ id: string }>(
  "bench.bare.claim",
  `with picked as materialized (select id from bench.bare where state = 'ready' order by id limit $1 for update skip locked)
   update bench.bare b set state = 'running' from picked p where b.id = p.id returning b.id`,
);
const COMPLETE = statement(
  "bench.bare.complete",
  `update bench.bare b set state = 'done' from ${unnest({ id: "int8" }, "i")} where b.id = i.id`,
);

/** Claims and completes `rows` rows a round. */
export async function bareLoop({ db, sql }: BenchPostgres, rows: number): Promise<Contender> {
  await sql(`
    create schema if not exists bench;
    create table if not exists bench.bare (id bigint generated always as identity primary key, state text not null default 'ready');
    create index if not exists bare_ready on bench.bare (id) where state = 'ready'`);
  return {
    name: "bare loop (limit)",
    async round() {
      await sql(
        "truncate bench.bare",
        `insert into bench.bare (state) select 'ready' from generate_series(1, ${rows})`,
        "vacuum analyze bench.bare",
      );
      return perSecond(rows, () =>
        inLoops(async () => {
          for (;;) {
            const items = await db.rows(CLAIM, [BATCH]);
            if (items.length === 0) return;
            await db.rows(COMPLETE, [items.map(({ id }) => id)]);
          }
        }),
      );
    },
  };
}

export async function inLoops(loop: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: LOOPS }, loop));
}
