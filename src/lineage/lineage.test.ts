/** The parts of the module together: what an event makes of a tenant's model, in its own transaction. */

import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { recordingLog } from "../../test/log.ts";
import { noHints } from "../../test/no-hints.ts";
import { signal, until } from "../../test/until.ts";
import { openDb } from "../kernel/data/db.ts";
import { systemIds } from "../kernel/ids.ts";
import { createOutbound } from "../kernel/net/outbound.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { createOutbox } from "../kernel/work/outbox.ts";
import { createWake } from "../kernel/work/wake.ts";
import { CATALOGUE } from "./catalogue.ts";
import { gravitinoEvent } from "./events.fixture.ts";
import { parseEvent } from "./ingest/event.ts";
import { createLineage } from "./lineage.ts";
import { BUILTIN, SETTINGS } from "./tasks/tasks.fixture.ts";
import { TASKS_TOPIC } from "./tasks/topics.ts";

const database = useDatabase();
let tenant = { id: "1", code: "", name: "" };

/** A process with so many connections; its services run when a test says so. */
async function start(poolSize = 4) {
  const db = openDb({ connection: database.connection, poolSize });
  const log = recordingLog();
  const wake = createWake();
  const outbound = createOutbound({ allowPrivate: true });
  onTestFinished(async () => {
    await outbound.close();
    await db.close();
  });
  const lineage = await createLineage({
    db,
    wake,
    hints: noHints,
    outbound,
    log,
    outbox: createOutbox([], wake),
    metrics: createMetrics().define(CATALOGUE.metrics),
    onRun: () => {},
    clock: systemClock,
    ids: systemIds,
    settings: {
      eventBytesMax: 1_048_576,
      waitingMax: 1_000,
      waitingBytesMax: 2 ** 30,
      createTenants: false,
      clockToleranceSeconds: 0,
      futureToleranceSeconds: 86_400,
      keepDays: 90,
      own: { enabled: false, id: 0, code: "millrace", name: "Millrace" },
      tasks: SETTINGS,
    },
    env: {},
  });
  const requeue = lineage.services.find(({ name }) => name === "lineage.tasks.requeue");
  if (!requeue) throw new Error("the service is missing");
  return {
    wake,
    log,
    requeue,
    send(name: string) {
      const event = gravitinoEvent("create_table", { name: `dw.${name}` });
      const read = {
        event: parseEvent(event),
        body: JSON.stringify(event),
        source: "GRAVITINO",
        baseline: false,
      } as const;
      return lineage.ingest.take(tenant, lineage.ingest.prepare(tenant.id, read));
    },
  };
}

const queued = async () =>
  (
    await database.query("select 1 from lineage.ol_async_task where tenant_id = $1 and resource_type = 'TABLE'", [
      tenant.id,
    ])
  ).length;

beforeEach(async () => {
  tenant = { id: String(Number(tenant.id) + 1), code: `t${tenant.id}`, name: "A tenant" };
  await database.query(
    "insert into lineage.tenant (id, code, name, state, model) values ($1, $2, 'A tenant', 'READY', $3)",
    [tenant.id, tenant.code, JSON.stringify(BUILTIN)],
  );
});

test("an event queues its tasks with the one connection that it has, and wakes those who work on them", async () => {
  const { send, wake } = await start(1);
  const woken = signal();
  wake.on(TASKS_TOPIC, woken.resolve);
  expect(await send("one")).toMatchObject({ state: "APPLIED" });
  expect(await queued()).toBe(1);
  await woken.promise;
});

describe("tasks that cannot be queued", () => {
  /** From now on queueing fails so, the first so many times. */
  async function fault(code: string, times: number): Promise<() => Promise<unknown>> {
    await database.query("create sequence public.faults");
    await database.query(
      `create function public.fault() returns trigger language plpgsql as $$ begin
         if nextval('public.faults') <= ${times} then raise exception 'no' using errcode = '${code}'; end if;
         return new;
       end $$`,
    );
    await database.query(
      "create trigger fault before insert on lineage.ol_async_task for each row execute function public.fault()",
    );
    const fix = async () => {
      await database.query("drop function if exists public.fault() cascade");
      await database.query("drop sequence if exists public.faults");
    };
    onTestFinished(fix);
    return fix;
  }

  test("do not hold up their event, and are queued later", async () => {
    const { send, requeue, log } = await start();
    const fix = await fault("23514", 1_000);
    expect(await send("two")).toMatchObject({ state: "APPLIED" });
    expect(await queued()).toBe(0);
    expect(log.lines).toContainEqual(expect.objectContaining({ message: expect.stringContaining("could not be") }));
    await fix();
    await until(async () => {
      await requeue.runOnce();
      return (await queued()) === 1;
    }, "the sweep to find it");
  });

  test("because the transaction has to be run again are queued when it is", async () => {
    const { send, log } = await start();
    await fault("40001", 1);
    expect(await send("three")).toMatchObject({ state: "APPLIED" });
    expect(await queued()).toBe(1);
    expect(log.lines).toEqual([]);
  });
});
