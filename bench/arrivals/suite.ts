/**
 * `npm run bench -- arrivals`: what an announcement costs beside a bare upsert on the same server, whether that grows with
 * idle models and history, and how a thousand models that become ready at once are run. Webhooks with an endpoint that hangs.
 */
import { Type } from "typebox";
import { statement } from "../../src/kernel/data/statement.ts";
import { atLeast, printMarkdown, times, withGoal } from "../chains/report.ts";
import { httpLoad } from "../http-load.ts";
import { type Contender, formatNumber, interleave, median } from "../measure.ts";
import { withPostgres } from "../postgres.ts";
import { createSite, type Site, type Size } from "./history.ts";
import { type ArrivalsServer, serveArrivals } from "./server.ts";
import { compareWebhooks } from "./webhooks.ts";

const LARGE: Size = { models: 10_000, dependenciesEach: 5, arrivals: 1_000_000 };
const SMALL: Size = { models: 100, dependenciesEach: 5, arrivals: 10_000 };
const REQUESTS = 20_000;
const READY_AT_ONCE = 1_000;

const BARE_UPSERT = statement(
  "bench.bare_upsert",
  `insert into bench.arrival (table_name, op_time, arrival_time) values ($1, $2, now())
   on conflict (table_name, op_time) do update set arrival_time = now()`,
);

export function run(rounds: number): Promise<void> {
  return withPostgres(async (postgres) => {
    console.error("making a large and a small past");
    const large = await createSite(postgres, "large", LARGE);
    const small = await createSite(postgres, "small", SMALL);
    const servers = { large: await serveWithBare(large), small: await serveWithBare(small) };
    await compareAnnouncements(servers, rounds);
    for (const server of Object.values(servers)) await server.stop();
    await measureReadyAtOnce(large, rounds);
    await compareWebhooks(small.db, rounds);
    for (const { db } of [large, small]) await db.close();
  });
}

function serveWithBare({ db }: Site): Promise<ArrivalsServer> {
  return serveArrivals(db, (http) => {
    const body = Type.Object({ srcTableName: Type.String(), opTime: Type.String() });
    http.post(
      "/bare",
      { config: { scope: "kpi:write" }, schema: { body } },
      async ({ body: { srcTableName, opTime } }) => {
        await db.rows(BARE_UPSERT, [srcTableName, opTime]);
        return { status: "SUCCESS" };
      },
    );
  });
}

async function compareAnnouncements(servers: { large: ArrivalsServer; small: ArrivalsServer }, rounds: number) {
  let round = 0;
  const contender = (name: string, { url, key }: ArrivalsServer, path: string, table: string): Contender => ({
    name,
    round() {
      round += 1;
      const body = JSON.stringify({ srcTableName: table, opTime: `r${round}-{n}` });
      return httpLoad({ url: url + path, key, body, amount: REQUESTS });
    },
  });
  const announce = "/api/open/kpi/srcTableComplete";
  const bare = contender("bare upsert", servers.large, "/bare", "NOBODY");
  const nobody = contender("a table that no model depends on", servers.large, announce, "NOBODY");
  const waiting = contender("a table that a waiting model depends on", servers.large, announce, "IDLE-1");
  const small = contender("the first, with 1/100 of models and history", servers.small, announce, "NOBODY");
  const figures = await interleave([bare, nobody, waiting, small], rounds, console.error);
  const of = ({ name }: Contender) => median(figures.get(name) ?? []);
  const row = (one: Contender, beside: Contender, least: number) => {
    const ratio = of(one) / of(beside);
    return [
      one.name,
      `${formatNumber(of(one))} requests/s`,
      `${times(ratio)} of: ${beside.name}`,
      withGoal(ratio, atLeast(least)),
    ];
  };
  printMarkdown(
    `POST srcTableComplete with ${LARGE.models.toLocaleString("en")} models and ${LARGE.arrivals.toLocaleString("en")} arrivals`,
    ["", "median", "ratio", "goal"],
    [
      [bare.name, `${formatNumber(of(bare))} requests/s`, "", ""],
      row(nobody, bare, 0.5),
      row(waiting, bare, 0.5),
      row(nobody, small, 0.8),
    ],
  );
}

/** One arrival makes a thousand models ready, beside ten thousand that it does not concern. */
async function measureReadyAtOnce(site: Site, rounds: number) {
  const { db, sent } = site;
  await db.exclusive(async (client) => {
    await client.query(
      `insert into arrivals.metrics_model (model_id, name, state, engine, sql, time_zone, rerun, timeout_seconds)
       select 'ready-' || n, 'ready', 1, 'duckdb', 'select ''K' || n || ''' as kpi_id, 1 as value', 'UTC', 'auto', 60
       from generate_series(1, $1::int) n`,
      [READY_AT_ONCE],
    );
    await client.query(
      `insert into arrivals.metrics_model_dependency (model_id, dependency_table_name)
       select 'ready-' || n, 'TRIGGER' from generate_series(1, $1::int) n`,
      [READY_AT_ONCE],
    );
    await client.query(
      "insert into arrivals.metrics_model_kpi (kpi_id, model_id) select 'K' || n, 'ready-' || n from generate_series(1, $1::int) n",
      [READY_AT_ONCE],
    );
    await client.query("analyze");
  });
  const server = await serveArrivals(db);
  let statementsPerModel = Number.NaN;
  let round = 0;
  const whole: Contender = {
    name: "ms until the last has ended",
    async round() {
      round += 1;
      sent.clear();
      const started = performance.now();
      const opTime = `ready-${round}`;
      const { considered } = await server.arrivals.announce({ table: "TRIGGER", opTime, idempotencyKey: null });
      const tasks = await Promise.all(
        considered.map((one) => server.arrivals.runWaiters.ended(one, AbortSignal.timeout(300_000))),
      );
      const succeeded = tasks.filter((task) => task?.status === "SUCCESS").length;
      if (succeeded !== READY_AT_ONCE) throw new Error(`${succeeded} of ${READY_AT_ONCE} models succeeded`);
      statementsPerModel = [...sent.values()].reduce((sum, count) => sum + count, 0) / READY_AT_ONCE;
      return performance.now() - started;
    },
  };
  const figures = await interleave([whole], Math.min(rounds, 3), console.error);
  const ms = median(figures.get(whole.name) ?? []);
  printMarkdown(
    `${READY_AT_ONCE.toLocaleString("en")} models ready by one arrival, ${LARGE.models.toLocaleString("en")} idle beside them`,
    ["", "median", "goal"],
    [
      ["until the last has ended", `${formatNumber(ms)} ms, ${formatNumber((READY_AT_ONCE / ms) * 1000)} runs/s`, ""],
      ["statements for each run", formatNumber(statementsPerModel), "none for an idle model"],
    ],
  );
  await server.stop();
}
