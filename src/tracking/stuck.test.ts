/** Stuck shards: why they are stuck, and a retry of all that match. */
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";
import { noHints } from "../../test/no-hints.ts";
import { reached, trackingTable } from "../../test/tracking.ts";
import { statement } from "../kernel/data/statement.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { createWake } from "../kernel/work/wake.ts";
import { CATALOGUE } from "./catalogue.ts";
import { createStuck } from "./stuck.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);

interface StuckItem {
  filename: string;
  shard: number;
  stage: string;
  reason: string;
}
interface StuckPage {
  items: StuckItem[];
  next: string | null;
}
interface Retried {
  retried: number;
  by_reason: Record<string, number>;
  more: boolean;
  until: string;
}
const STUCK = "/api/v1/pipeline/stuck";
const list = async (query = "") => (await millrace.api.get<StuckPage>(STUCK + query)).body;
const cells = ({ items }: StuckPage) =>
  items.map(({ filename, shard, stage, reason }) => `${filename}/${shard} ${stage} ${reason}`);
const retry = async (body: object, query = "") => {
  const answer = await millrace.api.post<Retried>(`${STUCK}:retry${query}`, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};
const LOCK = statement(
  "test.stuck.lock",
  "select from tracking.pipeline_tracking where filename = 'a' and shard = 0 for update",
);
const age = (filename: string, seconds: number) =>
  database.query(
    "update tracking.pipeline_tracking set updated_at = now() - make_interval(secs => $2) where filename = $1",
    [filename, seconds],
  );
/** One shard for each reason, and others that are not stuck. */
async function allKinds(): Promise<void> {
  await table.put(reached("shard-worker", "failed"), { filename: "a", shards: [0, 1] });
  await table.put(reached("mysql-sender", "started"), { filename: "b" });
  await age("b", 3_700);
  await table.put(reached("mysql-sender", "started"), { filename: "b-new" });
  await table.put(reached("shard-splitter", "new"), { filename: "c" });
  await millrace.api.post("/api/v1/pipeline/queues/shard-splitter/claim", { worker: "w", lease_seconds: 60 });
  await table.expire("c");
  await table.put(reached("shard-splitter", "new"), { filename: "c-held" });
  await millrace.api.post("/api/v1/pipeline/queues/shard-splitter/claim", { worker: "w", lease_seconds: 60 });
  await table.put(reached("event-ingest", "failed"), { filename: "d" });
  await table.put(reached("event-ingest", "started"), { filename: "e" });
  await age("e", 3_700);
  await table.put(reached("mysql-sender", "done"), { filename: "f" });
}

beforeEach(async () => {
  await table.clear();
  await database.query("truncate kernel.audit_log");
});

describe("the list of stuck shards", () => {
  test("names what failed, whose lease has expired, and what was started long ago without one", async () => {
    await allKinds();
    expect(cells(await list())).toEqual([
      "a/0 shard-worker failed",
      "a/1 shard-worker failed",
      "b/0 mysql-sender started_long",
      "c/0 shard-splitter lease_expired",
      "d/0 event-ingest failed",
    ]);
    const { body } = await millrace.api.get<{ stages: Record<string, unknown>[] }>("/api/v1/pipeline/queues");
    const stuck = ["failed", "lease_expired", "started_long"].map((reason) =>
      body.stages.reduce((sum, stage) => sum + Number(stage[reason]), 0),
    );
    expect(stuck).toEqual([3, 1, 1]);
  });

  test("is narrowed by reason, stage and name, and read in pages that neither repeat nor miss one", async () => {
    await allKinds();
    expect(cells(await list("?reason=lease_expired"))).toEqual(["c/0 shard-splitter lease_expired"]);
    expect(cells(await list("?stage=event-ingest"))).toEqual(["d/0 event-ingest failed"]);
    expect(cells(await list("?q=a&reason=failed"))).toEqual(["a/0 shard-worker failed", "a/1 shard-worker failed"]);
    const all: string[] = [];
    for (let after = ""; ; ) {
      const page: StuckPage = await list(`?limit=2${after && `&after=${encodeURIComponent(after)}`}`);
      all.push(...cells(page));
      if (page.next === null) break;
      after = page.next;
    }
    expect(all).toEqual(cells(await list()));
    expect((await millrace.api.get(`${STUCK}?after=nonsense`)).status).toBe(400);
  });

  test("has a shard once for each stage that failed", async () => {
    const filename = await table.put(reached("shard-worker", "started"));
    for (const stage of ["mysql-sender", "shard-worker"])
      await millrace.api.post(`/api/v1/pipeline/stages/${stage}/fail`, { filename, shard: 0, error: `no ${stage}` });
    expect(cells(await list("?limit=1"))).toEqual([`${filename}/0 shard-worker failed`]);
    expect((await list()).items.map(({ stage }) => stage)).toEqual(["shard-worker", "mysql-sender"]);
    expect((await retry({}, "?dryRun=true")).retried).toBe(2);
    expect(await retry({})).toMatchObject({ retried: 2, by_reason: { failed: 2 } });
    expect((await list()).items).toEqual([]);
  });
});

describe("a retry of all stuck shards", () => {
  test("counts first, then puts exactly those back into their queues, and a repeat changes nothing", async () => {
    await allKinds();
    const counted = { retried: 5, by_reason: { failed: 3, lease_expired: 1, started_long: 1 }, more: false };
    const before = await table.rows();
    const preview = await retry({}, "?dryRun=true");
    expect(preview).toMatchObject(counted);
    expect(await table.rows()).toEqual(before);

    expect(await retry({ until: preview.until })).toEqual({ ...preview, ...counted });
    const { body } = await millrace.api.get<{ stages: { stage: string; ready: number }[] }>("/api/v1/pipeline/queues");
    expect(body.stages.map(({ stage, ready }) => [stage, ready])).toEqual([
      ["event-ingest", 0],
      ["shard-splitter", 1],
      ["shard-worker", 2],
      ["mysql-sender", 1],
    ]);
    expect(await table.row("a")).toMatchObject({ shard_worker_status: "new", last_error: null, worker: null });
    expect(await table.row("c")).toMatchObject({
      shard_splitter_status: "new",
      shard_splitter_fence: null,
      leased: false,
    });
    expect(await table.row("d")).toMatchObject({ event_ingest_status: "started" });
    const after = await table.rows();
    expect(await retry({})).toMatchObject({ retried: 0 });
    expect(await table.rows()).toEqual(after);
    const { body: log } = await millrace.api.get<{ items: { action: string }[] }>("/api/v1/audit");
    expect(log.items.filter(({ action }) => action === "pipeline.retry")).toHaveLength(2);
  });

  test("keeps to the stage, the reason and the name, and to what was stuck at the preview", async () => {
    await allKinds();
    expect((await retry({ reason: "started_long" }, "?dryRun=true")).retried).toBe(1);
    expect((await retry({ stage: "shard-worker", filename: "a" }, "?dryRun=true")).retried).toBe(2);
    expect((await retry({ q: "b" }, "?dryRun=true")).retried).toBe(1);
    const { until } = await retry({ reason: "failed" }, "?dryRun=true");
    await database.query("select pg_sleep(0.01)");
    await table.put(reached("shard-worker", "failed"), { filename: "later" });
    expect((await retry({ reason: "failed", until })).retried).toBe(3);
    expect(cells(await list("?reason=failed"))).toEqual(["later/0 shard-worker failed"]);
  });

  test("ends the lease of a worker that fell silent: its late finish is refused", async () => {
    await table.put(reached("shard-worker", "new"), { filename: "x" });
    const claim = await millrace.api.post<{ items: { fence: string }[] }>(
      "/api/v1/pipeline/queues/shard-worker/claim",
      {
        worker: "silent",
      },
    );
    await table.expire("x");
    expect(await retry({})).toMatchObject({ by_reason: { lease_expired: 1 } });
    const late = { filename: "x", shard: 0, fence: claim.body.items[0]?.fence };
    expect((await millrace.api.post("/api/v1/pipeline/stages/shard-worker/done", late)).body).toMatchObject({
      code: "LEASE_LOST",
    });
  });

  test("goes in batches, stops at its limit, and is finished by calling again", async () => {
    const shards = Array.from({ length: 25 }, (_, shard) => shard);
    await table.put(reached("shard-worker", "failed"), { filename: "a", shards });
    let writes = 0;
    const counting = {
      ...database.db,
      rows: (...[sent, values]: Parameters<typeof database.db.rows>) => {
        if (sent.name.includes(".retry")) writes += 1;
        return database.db.rows(sent, values);
      },
    } as typeof database.db;
    const stuck = createStuck({
      db: counting,
      wake: createWake(),
      hints: noHints,
      metrics: createMetrics().define(CATALOGUE.metrics),
      limits: { batch: 4, call: 10 },
    });
    const caller = { name: "test", keyId: null, scopes: new Set<string>() };
    const actor = { caller, address: "", requestId: "" } as unknown as Parameters<typeof stuck.retry>[1];
    const first = await stuck.retry({ reason: "failed", stage: "shard-worker" }, actor);
    expect([first.retried, first.more, writes]).toEqual([10, true, 3]);
    const { until } = first;
    expect(await stuck.retry({ reason: "failed", stage: "shard-worker", until }, actor)).toMatchObject({
      retried: 10,
      more: true,
    });
    expect(await stuck.retry({ reason: "failed", stage: "shard-worker", until }, actor)).toMatchObject({
      retried: 5,
      more: false,
    });
    expect((await list()).items).toEqual([]);
  });

  test("leaves alone what another transaction holds", async () => {
    await table.put(reached("shard-worker", "failed"), { filename: "a", shards: [0, 1] });
    await database.db.tx(async (tx) => {
      await tx.rows(LOCK);
      expect(await retry({})).toMatchObject({ retried: 1 });
    });
    expect(cells(await list())).toEqual(["a/0 shard-worker failed"]);
  });
});
