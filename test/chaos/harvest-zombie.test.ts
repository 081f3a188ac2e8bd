/**
 * An executor is suspended while it waits for a page, until its session expires. Another one finishes the slice, and the first
 * one changes nothing when it continues; then it works with a new session.
 */
import { expect, onTestFinished, test } from "vitest";
import { endOf, plan } from "../../src/harvest/harvest.fixture.ts";
import {
  type Asked,
  applyScripted,
  correct,
  definitionOf,
  itemsOf,
  type Said,
  startScripted,
} from "../../src/harvest/run/scripted.fixture.ts";
import { endSessionOf } from "../arrivals-servers.ts";
import { useDatabase } from "../database.ts";
import { type Server, startServer } from "../server.ts";
import { signal, until } from "../until.ts";

const database = useDatabase();

/** Everything that a harvest writes. */
async function written(): Promise<unknown[]> {
  const tables = [
    "ing_plan",
    "ing_plan_slice",
    "ing_task",
    "ing_task_run",
    "ing_task_run_batch",
    "record",
    "ing_cursor",
  ];
  return Promise.all(tables.map((table) => database.query(`select t::text from harvest.${table} t order by 1`)));
}

async function inFlight({ url, adminKey }: Server): Promise<number> {
  const text = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })).text();
  return Number(/^patra_ingest_executor_concurrency (\d+)/m.exec(text)?.[1]);
}

test("an executor suspended past its lease changes nothing, and then continues to work", {
  timeout: 120_000,
}, async () => {
  const source = await startScripted();
  onTestFinished(() => source.close());
  const { promise, resolve } = signal();
  const answer = correct(itemsOf(30));
  let seconds = 0;
  source.on("source", async (request: Asked): Promise<Said> => {
    if (request.query.get("offset") === "10") {
      seconds += 1;
      if (seconds === 1) await promise; // The first process waits for its second page.
    }
    return answer(request);
  });
  const env = { MILLRACE_HARVEST_ALLOW_PRIVATE: source.host, MILLRACE_SECRET_KEY: "0".repeat(64) };
  const start = (MILLRACE_ROLES: string) => startServer({ database, env: { ...env, MILLRACE_ROLES } });
  const [api, zombie] = await Promise.all([start("api,scheduler"), start("worker")]);
  await applyScripted({ api: api.api, server: source }, definitionOf("source"));
  const body = { source: "source", window: { from: "2026-08-01", to: "2026-08-02" } };
  const { planId } = await plan(api.api, body);
  await until(async () => {
    const [row] = await database.query<{ batches: number }>("select batches from harvest.ing_plan_slice");
    return row?.batches === 1 && seconds === 1;
  }, "the first page to be committed and the second to be asked for");
  zombie.kill("SIGSTOP");
  await endSessionOf(database, zombie.pid);

  const successor = await start("worker");
  expect(await endOf(api.api, planId)).toMatchObject({
    status: "COMPLETE",
    reconciliation: { received: 30, inserted: 30, unchanged: 0 },
  });
  const before = await written();
  resolve();
  zombie.kill("SIGCONT");
  await until(async () => (await inFlight(zombie)) === 0, "the suspended run to end");
  expect(await written()).toEqual(before);
  expect(source.asked("source").map(({ query }) => query.get("offset"))).toEqual(
    expect.arrayContaining(["0", "10", "20"]),
  );

  expect(await successor.stop()).toBe(0);
  const again = await endOf(api.api, (await plan(api.api, body)).planId);
  expect(again).toMatchObject({ status: "COMPLETE", reconciliation: { unchanged: 30 } });
  expect(await Promise.all([zombie.stop(), api.stop()])).toEqual([0, 0]);
});
