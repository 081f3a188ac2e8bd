/**
 * Postgres stops under load and starts again. The server stays up, answers 503 with Retry-After meanwhile, keeps what it
 * acknowledged, and recovers by itself.
 */
import { rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { EmbeddedPostgres } from "../../src/kernel/embedded-postgres/index.ts";
import {
  postmasterPid,
  query,
  start as startPostgres,
  stoppedDataDir,
  temporaryFolder,
} from "../../src/kernel/embedded-postgres/testing.fixture.ts";
import { seededRandom } from "../random.ts";
import { type Server, startServer } from "../server.ts";
import { until } from "../until.ts";
import { connectionOf } from "./embedded.ts";
import { createLedger, type Row, SELECT_ROWS } from "./ledger.ts";
import { createLoad } from "./load.ts";

const ANSWERS = 300;
/** A connection attempt times out after 5 s; no call may take much longer. */
const SLOWEST_MS_MAX = 8_000;

const endings = [
  { signal: "SIGKILL", ending: "is killed", origin: "recovered" },
  { signal: "SIGINT", ending: "is shut down", origin: "started" },
] as const;

for (const { signal, ending, origin } of endings) {
  test(`the server recovers when its own Postgres ${ending}`, async () => {
    const dataDir = await stoppedDataDir();
    const server = await startServer({ database: { dataDir } });
    const { ledger, load } = startLoad(server);
    await load.answers(ANSWERS);

    process.kill(postmasterPid(dataDir), signal);
    await until(() => server.logged("Postgres is back").length > 0, "Postgres to come back");
    expect(server.logged("Postgres is back")).toMatchObject([{ origin }]);

    await load.answers(ANSWERS);
    await load.stop();
    expect(ledger.contradictions(await query<Row>(await connectionOf(dataDir), SELECT_ROWS))).toEqual([]);
    expect(load.refused()).toBeGreaterThan(0);
    expect(load.slowestMs()).toBeLessThan(SLOWEST_MS_MAX);
    expect(await server.stop()).toBe(0);
  });
}

test("the server recovers when the Postgres of DATABASE_URL is stopped and started", async () => {
  const dataDir = await stoppedDataDir();
  const socket = join(await temporaryFolder(), "socket");
  let postgres = await startPostgres(dataDir);
  await pointTo(postgres, socket);
  const { user, port, database } = postgres.connection;
  const url = `postgres://${user}@localhost:${port}/${database}?host=${encodeURIComponent(socket)}`;
  const server = await startServer({ database: { url } });
  const { ledger, load } = startLoad(server);
  await load.answers(ANSWERS);

  await postgres.stop();
  expect((await server.api.get("/healthz")).status).toBe(200);
  const { status, body, headers } = await server.api.get("/readyz");
  expect({ status, body }).toMatchObject({ status: 503, body: { code: "DATABASE_UNAVAILABLE" } });
  expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  const refused = load.refused();
  await until(() => load.refused() >= refused + 100, "many refusals");

  postgres = await startPostgres(dataDir);
  await pointTo(postgres, socket);
  await load.answers(ANSWERS);
  await load.stop();
  expect(ledger.contradictions(await query<Row>(postgres.connection, SELECT_ROWS))).toEqual([]);
  expect(load.slowestMs()).toBeLessThan(SLOWEST_MS_MAX);
  expect(await server.stop()).toBe(0);
});

function startLoad(server: Server) {
  const ledger = createLedger();
  const load = createLoad({ ledger, random: seededRandom() });
  load.start(server.api);
  return { ledger, load };
}

/** A restarted Postgres has a new socket folder; this name for it stays. */
async function pointTo({ connection }: EmbeddedPostgres, name: string): Promise<void> {
  await symlink(connection.host, `${name}.new`);
  await rename(`${name}.new`, name);
}
