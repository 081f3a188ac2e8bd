/**
 * Executors are killed again and again while they harvest all simulators. Others go on with their slices within 30 s, and in the
 * end the records are those of the sources, each once, and no batch names a body that is missing. The long suite waits until the
 * sessions of killed processes expire by themselves.
 */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliDecompressSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import {
  applySource,
  endOf,
  identityOf,
  plan,
  recordsOf,
  type SourceName,
  startSimulatorOf,
  windowOf,
} from "../../src/harvest/harvest.fixture.ts";
import { temporaryFolder } from "../../src/kernel/embedded-postgres/testing.fixture.ts";
import type { Simulator } from "../../src/simulators/index.ts";
import { endSessionOf } from "../arrivals-servers.ts";
import { useDatabase } from "../database.ts";
import { seededRandom } from "../random.ts";
import { type Server, startServer } from "../server.ts";
import { until } from "../until.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const KILLS = LONG ? 20 : 3;
const DAYS = Array.from({ length: LONG ? 60 : 3 }, (_, day) =>
  new Date(Date.UTC(2026, 6, 1 + day)).toISOString().slice(0, 10),
);
/** Few pages a day: a lost answer costs Crossref the day's, so with many of them no day would end. */
const RECORDS_PER_DAY = 120;
const RECORDS = DAYS.length * RECORDS_PER_DAY;
const PAGE = 20;
const RECOVERY_MS_MAX = 30_000;
const KINDS = ["crossref", "pubmed", "arxiv", "europepmc", "openalex"] as const satisfies readonly SourceName[];
const FAULTS = {
  "http-500": 0.02,
  "answer-lost": 0.01,
  "truncated-body": 0.02,
  "reset-before-headers": 0.02,
  gzip: 0.3,
};

const database = useDatabase();

interface Orphan {
  task_id: string;
  attempt_count: number;
  killedAt: Date;
}

/** The tasks that a process holds. */
function heldBy({ pid }: Server): Promise<Orphan[]> {
  return database.query<Orphan>(
    `select t.task_id::text, t.attempt_count, now() as "killedAt" from harvest.ing_task t
     join kernel.session s on s.id = t.session_id where s.process like '%:' || $1`,
    [String(pid)],
  );
}

/** How long each task waited for its next run; undefined where there is none. Its last result may have been committed at the kill. */
async function recoveriesOf(orphans: readonly Orphan[]): Promise<(number | undefined)[]> {
  return Promise.all(
    orphans.map(async ({ task_id, attempt_count, killedAt }) => {
      const [row] = await database.query<{ at: Date | null }>(
        `select coalesce(min(r.started_at), t.finished_at) as at from harvest.ing_task t
         left join harvest.ing_task_run r on r.task_id = t.task_id and r.attempt_no > $2
         where t.task_id = $1 group by t.finished_at`,
        [task_id, attempt_count],
      );
      return row?.at ? row.at.getTime() - killedAt.getTime() : undefined;
    }),
  );
}

test.each([
  ["", {}],
  [", and with faults on the way", FAULTS],
])(
  `every record is there once although executors are killed ${KILLS} times%s`,
  {
    timeout: 150_000 + KILLS * 45_000,
  },
  async (_, faults) => {
    const random = seededRandom();
    const simulators = await Promise.all(
      KINDS.map((kind) =>
        startSimulatorOf(kind, {
          days: DAYS,
          recordsPerDay: RECORDS_PER_DAY,
          pageSize: 10,
          latencyMs: 60,
          unlimited: true,
          faults,
        }),
      ),
    );
    onTestFinished(async () => void (await Promise.all(simulators.map((simulator) => simulator.close()))));
    const folder = await temporaryFolder();
    const config = join(folder, "millrace.yaml");
    const allowPrivate = simulators.map(({ origin }) => new URL(origin).host);
    await writeFile(config, JSON.stringify({ harvest: { lostLimit: 1_000, bodies: "bodies", allowPrivate } }));
    const env = {
      MILLRACE_CONFIG: config,
      MILLRACE_SECRET_KEY: "0".repeat(64),
      OPENALEX_API_KEY: "test-key-0001",
    };
    const start = (MILLRACE_ROLES: string) => startServer({ database, env: { ...env, MILLRACE_ROLES } });
    const [api, ...executors] = await Promise.all(["api", "scheduler,worker", "scheduler,worker"].map(start));
    if (!api) throw new Error("no server");
    const workers: Promise<Server>[] = executors.map((server) => Promise.resolve(server));

    const harvests = await Promise.all(
      simulators.map(async (simulator, index) => {
        const kind = KINDS[index] as SourceName;
        const ids = kind === "pubmed" ? { batching: { idBatchSize: PAGE } } : {};
        const change = { pagination: { pageSize: PAGE }, ...ids };
        const source = await applySource(api.api, kind, simulator, change);
        return { kind, simulator, source, ...(await plan(api.api, { source, window: windowOf(simulator) })) };
      }),
    );
    const orphans: Orphan[] = [];
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const isOver = await until(async () => {
        const [tasks] = await database.query<{ running: number; open: number }>(
          `select count(*) filter (where status_code = 'EXECUTING')::int as running, count(*)::int as open
         from harvest.ing_task where status_code in ('QUEUED', 'EXECUTING')`,
        );
        if (tasks?.open === 0) return { yes: true };
        return (tasks?.running ?? 0) > 0 && { yes: false };
      }, "a task that runs");
      if (isOver.yes) break; // A slow machine starts processes more slowly than it harvests.
      await sleep(random.between(50, 400));
      // One that holds tasks, where there is one: its kill has an effect.
      const servers = await Promise.all(workers);
      const held = await Promise.all(servers.map(heldBy));
      const busy = [0, 1].filter((index) => (held[index]?.length ?? 0) > 0);
      const index = busy[random.between(0, busy.length - 1)] ?? random.between(0, 1);
      const victim = servers[index] as Server;
      victim.kill("SIGKILL");
      expect(await victim.exited).toBe("SIGKILL");
      orphans.push(...(await heldBy(victim)));
      if (!LONG) await endSessionOf(database, victim.pid);
      workers[index] = start("scheduler,worker");
    }
    for (const { kind, simulator, source, planId } of harvests) {
      const ended = await endOf(api.api, planId, LONG ? 400_000 : 120_000);
      expect(ended, kind).toMatchObject({
        status: "COMPLETE",
        reconciliation: { received: RECORDS, inserted: RECORDS, updated: 0, gaps: 0 },
      });
      const wanted = expectedOf(simulator);
      expect(await storedOf(api, kind, source, wanted.length)).toEqual(wanted);
      expect(await watermarkOf(source)).toBe(`${windowOf(simulator).to}T00:00:00.000Z`);
    }
    expect(await database.query(WRONG_BATCHES)).toEqual([]);
    const planIds = harvests.map(({ planId }) => planId);
    expect(await missingBodies(join(folder, "bodies"), planIds)).toEqual([]);
    const recoveries = await recoveriesOf(orphans);
    console.info(
      `${orphans.length} orphaned tasks, recovered after ${Math.max(...recoveries.map((ms) => ms ?? Number.NaN))} ms at most`,
    );
    expect(orphans.length).toBeGreaterThan(0);
    for (const ms of recoveries) expect(ms).toBeLessThan(RECOVERY_MS_MAX);
    const servers = [api, ...(await Promise.all(workers))];
    expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0, 0]);
  },
);

/** Slices whose batches of the last generation are not exactly those that it counts. */
const WRONG_BATCHES = `
  select s.slice_id from harvest.ing_plan_slice s
  left join harvest.ing_task_run_batch b on b.slice_id = s.slice_id and b.generation = s.generation
  group by s.slice_id having count(b.batch_no) <> s.batches or coalesce(max(b.batch_no), 0) <> s.batches`;

/** The hashes of bodies that batches and failures of these plans name and that are not whole files. */
async function missingBodies(folder: string, planIds: readonly string[]): Promise<string[]> {
  const named = await database.query<{ hash: string }>(
    `select body_hash as hash from harvest.ing_task_run_batch where plan_id = any($1) and body_hash is not null
     union select f.body_hash from harvest.request_failure f join harvest.ing_task_run using (run_id)
       join harvest.ing_task t using (task_id) where t.plan_id = any($1) and f.body_hash is not null`,
    [planIds],
  );
  expect(named.length).toBeGreaterThan(0);
  const isWhole = async (hash: string) => {
    const content = await readFile(join(folder, hash.slice(0, 2), `${hash}.br`)).catch(() => undefined);
    return content && createHash("sha256").update(brotliDecompressSync(content)).digest("hex") === hash;
  };
  const whole = await Promise.all(named.map(({ hash }) => isWhole(hash)));
  return named.flatMap(({ hash }, index) => (whole[index] ? [] : [hash]));
}

async function watermarkOf(source: string): Promise<string | undefined> {
  const rows = await database.query<{ value: string }>(
    "select cursor_value as value from harvest.ing_cursor where provenance_code = $1",
    [source],
  );
  return rows[0]?.value;
}

async function storedOf({ api }: Server, kind: SourceName, source: string, count: number) {
  const records = await recordsOf(api, source, count);
  return records.map((record) => ({ ...identityOf(kind, record), version: record.version })).sort(byId);
}

function expectedOf(simulator: Simulator) {
  return simulator
    .records()
    .map(({ id, content, deleted }) => ({ id, content: deleted ? "undefined" : content, deleted, version: 1 }))
    .sort(byId);
}

function byId(one: { id: string }, other: { id: string }): number {
  return one.id < other.id ? -1 : 1;
}
