/**
 * `npm run bench -- lineage`: events over HTTP, durable and applied, beside the bare insert of the same bodies; a tenant that
 * floods beside others; and the graph of a large tenant.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { Value } from "typebox/value";
import { createKeys } from "../../src/kernel/auth/keys.ts";
import type { Db } from "../../src/kernel/data/db.ts";
import { systemIds } from "../../src/kernel/ids.ts";
import { createOutbound } from "../../src/kernel/net/outbound.ts";
import { systemClock } from "../../src/kernel/time/clock.ts";
import { createOutbox } from "../../src/kernel/work/outbox.ts";
import { CATALOGUE } from "../../src/lineage/catalogue.ts";
import { createLineage } from "../../src/lineage/lineage.ts";
import { lineageRoutes } from "../../src/lineage/routes.ts";
import { LineageSettings } from "../../src/lineage/settings.ts";
import { noHints } from "../../test/no-hints.ts";
import { atLeast, atMost, printMarkdown, times, withGoal } from "../chains/report.ts";
import { type Contender, formatNumber, interleave, median, percentile, perSecond } from "../measure.ts";
import { type BenchPostgres, withPostgres } from "../postgres.ts";
import { type BenchServer, serveBench } from "../server.ts";
import { graphFigures } from "./graph.ts";
import { lineageLoad } from "./load.ts";
import { type SparkLoad, sparkEvent } from "./spark-events.ts";

const EVENTS = 6_000;
const CONNECTIONS = 50;
const BARE_CONNECTIONS = 10;
const BATCH = 100;
const NEW_EVERY = 20;
const FLOOD_CONNECTIONS = 100;
const QUIET_TENANTS = 5;
const QUIET_EVENTS = 100;
/** An idle connection tells its counts after ten seconds at the latest. */
const STATISTICS_MS = 12_000;
const BEGINNING = Date.UTC(2026, 0, 1);
const NO_WAKE = { hint() {}, on: () => () => {}, async stop() {} };

export function run(rounds: number): Promise<void> {
  return withPostgres(async (postgres) => {
    const server = await serveLineage(postgres.db);
    await compareIngest(postgres, server, rounds);
    await compareFlood(postgres, server, rounds);
    await server.stop();
    await graphFigures(postgres, rounds);
  });
}

async function serveLineage(db: Db): Promise<BenchServer> {
  return serveBench(db, async ({ log, registry, wake, http }) => {
    const metrics = registry.define(CATALOGUE.metrics);
    const outbound = createOutbound({ allowPrivate: false });
    const settings = Value.Parse(LineageSettings, Value.Default(LineageSettings, {}));
    const lineage = await createLineage({
      db,
      wake,
      hints: noHints,
      outbound,
      metrics,
      log,
      settings,
      onRun: () => {},
      clock: systemClock,
      ids: systemIds,
      env: {},
      outbox: createOutbox([], wake),
    });
    await lineage.prepare();
    await lineageRoutes(http, { db, clock: systemClock, ids: systemIds, metrics, lineage, settings });
    return async () => {
      await lineage.ingest.drain();
      await outbound.close();
    };
  });
}

/** A tenant that is ready, and a key for it. */
async function makeTenant({ db, sql }: BenchPostgres, id: number): Promise<string> {
  await sql(`insert into lineage.tenant (id, code, name, state) values (${id}, 't${id}', 'Tenant ${id}', 'READY')`);
  const keys = createKeys({ db, wake: NO_WAKE, hints: noHints, clock: systemClock, adminKey: undefined });
  const made = await keys.create(
    db,
    { name: `t${id}`, scopes: ["lineage:write"], tenantId: id, source: "COMPUTE_ENGINE", rateLimitPerMinute: 1e9 },
    "bench",
  );
  return made.key;
}

async function compareIngest(postgres: BenchPostgres, { url }: BenchServer, rounds: number): Promise<void> {
  const key = await makeTenant(postgres, 1);
  const bare = await openBare(postgres);
  let round = 0;
  let last: SparkLoad | undefined;
  const load = (path: string, batch: number, spark: SparkLoad) => {
    last = spark;
    const connections = Math.max(2, CONNECTIONS / batch);
    return lineageLoad({ url: url + path, key, events: EVENTS, batch, connections, spark });
  };
  const next = (newEvery: number): SparkLoad => {
    round += 1;
    return { series: `r${round}-`, since: BEGINNING + round * EVENTS, newEvery };
  };
  const direct: Contender = {
    name: "bare insert of the same bodies",
    round: () => bare.insertAll(next(NEW_EVERY)),
    end: bare.close,
  };
  const single: Contender = {
    name: "one event a request",
    round: async () => (await load("/api/v1/lineage", 1, next(NEW_EVERY))).perSecond,
  };
  const batched: Contender = {
    name: `${BATCH} events a request`,
    round: async () => (await load("/api/v1/lineage/batch", BATCH, next(NEW_EVERY))).perSecond,
  };
  const known: Contender = {
    name: "new runs of known jobs",
    round: async () => (await load("/api/v1/lineage", 1, next(0))).perSecond,
  };
  const repeats: Contender = {
    name: "the very same events again",
    round: async () => (await load("/api/v1/lineage", 1, last ?? next(0))).perSecond,
  };
  const figures = await interleave([direct, single, batched, known, repeats], rounds, console.error);
  const before = await rowsChanged(postgres);
  await repeats.round();
  const changed = (await rowsChanged(postgres)) - before;
  const of = ({ name }: Contender) => median(figures.get(name) ?? []);
  const row = (one: Contender, beside: Contender, least?: number) => {
    const ratio = of(one) / of(beside);
    return [
      one.name,
      `${formatNumber(of(one))} events/s`,
      `${times(ratio)} of: ${beside.name}`,
      least === undefined ? "" : withGoal(ratio, atLeast(least)),
    ];
  };
  printMarkdown(
    `Events of Spark over HTTP, ${formatNumber(Buffer.byteLength(sparkEvent({ series: "x", since: BEGINNING, newEvery: 0 }, 0)))} bytes each`,
    ["", "median", "ratio", "goal"],
    [
      [direct.name, `${formatNumber(of(direct))} events/s`, "", ""],
      row(single, direct, 0.3),
      row(known, direct),
      row(repeats, direct, 0.6),
      ["rows that they update or delete", String(changed), "", changed === 0 ? "none" : "none (missed)"],
      row(batched, single, 1.5),
    ],
  );
}

/** Rows of the whole module that were updated or deleted until now, once every connection has told its counts. */
async function rowsChanged({ db }: BenchPostgres): Promise<number> {
  await sleep(STATISTICS_MS);
  return db.exclusive(async (client) => {
    const { rows } = await client.query<{ changed: number }>(
      "select sum(n_tup_upd + n_tup_del)::float8 as changed from pg_stat_user_tables where schemaname = 'lineage'",
    );
    return rows[0]?.changed ?? Number.NaN;
  });
}

/** One row an event, as a table with a key would hold it, over so many connections. */
async function openBare({ connection, sql }: BenchPostgres) {
  await sql(
    "create schema bench",
    `create table bench.event (
       id bigint generated always as identity primary key, tenant_id bigint not null, event jsonb not null,
       created_at timestamptz not null default now()
     )`,
  );
  const pool = new pg.Pool({ ...connection, max: BARE_CONNECTIONS });
  return {
    async insertAll(spark: SparkLoad): Promise<number> {
      const bodies = Array.from({ length: EVENTS }, (_, n) => sparkEvent(spark, n));
      return perSecond(EVENTS, async () => {
        await Promise.all(
          Array.from({ length: BARE_CONNECTIONS }, async () => {
            for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
              await pool.query({
                name: "bare",
                text: "insert into bench.event (tenant_id, event) values (1, $1)",
                values: [body],
              });
            }
          }),
        );
      });
    },
    close: () => pool.end(),
  };
}

/** How long others wait while one tenant sends a hundred times as much as each of them. */
async function compareFlood(postgres: BenchPostgres, { url }: BenchServer, rounds: number): Promise<void> {
  const flooding = await makeTenant(postgres, 100);
  const quiet = await Promise.all(
    Array.from({ length: QUIET_TENANTS }, (_, index) => makeTenant(postgres, 101 + index)),
  );
  let round = 0;
  const send = (key: string, events: number, connections: number) =>
    lineageLoad({
      url: `${url}/api/v1/lineage`,
      key,
      events,
      batch: 1,
      connections,
      spark: { series: `f${round}-`, since: BEGINNING + round * QUIET_EVENTS * 100, newEvery: NEW_EVERY },
    });
  const others = async () => {
    const results = await Promise.all(quiet.map((key) => send(key, QUIET_EVENTS, 1)));
    return percentile(
      results.flatMap(({ latencies }) => latencies),
      0.95,
    );
  };
  const alone: Contender = {
    name: "the others alone",
    round() {
      round += 1;
      return others();
    },
  };
  const flooded: Contender = {
    name: "beside one that sends 100x as much",
    async round() {
      round += 1;
      const flood = send(flooding, QUIET_EVENTS * 100, FLOOD_CONNECTIONS);
      const p95 = await others();
      await flood;
      return p95;
    },
  };
  const figures = await interleave([alone, flooded], rounds, console.error);
  const of = ({ name }: Contender) => median(figures.get(name) ?? []);
  const ratio = of(flooded) / of(alone);
  printMarkdown(
    `${QUIET_TENANTS} tenants, one request at a time each, p95 of their latency`,
    ["", "median", "ratio", "goal"],
    [
      [alone.name, `${formatNumber(of(alone))} ms`, "", ""],
      [flooded.name, `${formatNumber(of(flooded))} ms`, times(ratio), withGoal(ratio, atMost(2, "x"))],
    ],
  );
}
