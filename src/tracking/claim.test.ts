/** Leases over HTTP: claim, finish, heartbeat, release. A daemon that lost its lease can change nothing. */
import { beforeEach, describe, expect, test } from "vitest";
import type { Answer } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";
import { reached, trackingTable } from "../../test/tracking.ts";
import { QUEUE_STAGES, type QueueStage } from "./states.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);
const post = <Body = Record<string, unknown>>(path: string, body: unknown) =>
  millrace.api.post<Body>(`/api/v1/pipeline${path}`, body);

interface Claimed {
  filename: string;
  shard: number;
  fence: string;
  leased_until: string;
  created_at: string;
}

async function claim(stage: QueueStage, body: object = {}): Promise<Claimed[]> {
  const answer = await post<{ items: Claimed[] }>(`/queues/${stage}/claim`, { worker: "w", ...body });
  expect(answer.status).toBe(200);
  return answer.body.items;
}

async function claimOne(stage: QueueStage): Promise<Claimed> {
  const [item] = await claim(stage);
  if (!item) throw new Error("there was nothing to claim");
  return item;
}

const finish = (
  stage: QueueStage,
  transition: "done" | "fail",
  { filename, shard }: Claimed,
  fence?: string,
): Promise<Answer<unknown>> =>
  post(`/stages/${stage}/${transition}`, { filename, shard, ...(fence === undefined ? {} : { fence }) });
const LOST = { status: 409, body: { code: "LEASE_LOST" } };

beforeEach(() => table.clear());

describe("a claim", () => {
  test.each(QUEUE_STAGES)("of %s starts the oldest ready shards and hands them out with a fence", async (stage) => {
    const older = await table.put(reached(stage, "new"), { shards: [1, 0] });
    const newer = await table.put(reached(stage, "new"));
    const answer = await post<{ stage: string; items: Claimed[] }>(`/queues/${stage}/claim`, {
      worker: "w",
      limit: 2,
      lease_seconds: 30,
    });
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    const item = (shard: number) => ({
      filename: older,
      shard,
      created_at: time,
      fence: expect.stringMatching(/^\d+$/),
      leased_until: time,
    });
    expect(answer.status).toBe(200);
    expect(answer.body.stage).toBe(stage);
    expect(answer.body.items.sort((a, b) => a.shard - b.shard)).toEqual([item(0), item(1)]);
    expect(await table.row(older)).toMatchObject({
      [`${stage.replace("-", "_")}_status`]: "started",
      worker: "w",
      leased: true,
    });
    expect(await table.row(newer)).toMatchObject({ [`${stage.replace("-", "_")}_status`]: "new", leased: false });
  });

  test("takes only what is ready", async () => {
    await table.put(reached("event-ingest", "started"));
    await table.put(reached("shard-splitter", "started"));
    await table.put(reached("shard-splitter", "failed"));
    await table.put(reached("shard-worker", "new"));
    expect(await claim("shard-splitter", { limit: 10 })).toEqual([]);
  });

  test("lasts for the requested time, a minute by default, at least a second", async () => {
    await table.put(reached("shard-splitter", "new"), { shards: [0, 1] });
    const seconds = ([item]: Claimed[]) => (Date.parse(item?.leased_until ?? "") - Date.now()) / 1000;
    expect(seconds(await claim("shard-splitter"))).toBeCloseTo(60, -1);
    expect(seconds(await claim("shard-splitter", { lease_seconds: 3_600 }))).toBeCloseTo(3_600, -2);
    const refused = { status: 400, body: { code: "VALIDATION_FAILED" } };
    expect(await post("/queues/shard-splitter/claim", { worker: "w", lease_seconds: 0 })).toMatchObject(refused);
  });

  test("never hands out a shard twice, however many claim at the same time", async () => {
    await table.put(reached("shard-worker", "new"), { shards: Array.from({ length: 100 }, (_, shard) => shard) });
    const claims = await Promise.all(Array.from({ length: 30 }, () => claim("shard-worker", { limit: 5 })));
    const shards = claims.flat().map(({ shard }) => shard);
    expect(new Set(shards).size).toBe(100);
    expect(shards).toHaveLength(100);
  });

  test("cannot be started again, not even by its own worker", async () => {
    await table.put(reached("shard-worker", "new"));
    const { filename, shard } = await claimOne("shard-worker");
    expect(await post("/stages/shard-worker/start", { filename, shard, worker: "w" })).toMatchObject({
      status: 409,
      body: { code: "WRONG_STATUS" },
    });
  });

  test.each([
    ["no worker", {}],
    ["an empty worker", { worker: "" }],
    ["a limit of 0", { worker: "w", limit: 0 }],
    ["a limit above 1000", { worker: "w", limit: 1_001 }],
    ["a wait above 60 s", { worker: "w", wait_seconds: 61 }],
    ["a misspelt field", { worker: "w", lease_second: 5 }],
  ])("with %s is 400 and claims nothing", async (_what, body) => {
    const filename = await table.put(reached("shard-worker", "new"));
    expect(await post("/queues/shard-worker/claim", body)).toMatchObject({
      status: 400,
      body: { code: "VALIDATION_FAILED" },
    });
    expect(await table.row(filename)).toMatchObject({ shard_worker_status: "new" });
  });
});

describe.each(["done", "fail"] as const)("%s of a claimed shard", (transition) => {
  const status = transition === "done" ? "done" : "failed";

  test("succeeds with its fence, ends the lease, and may be repeated", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    const item = await claimOne("shard-worker");
    expect(await finish("shard-worker", transition, item, item.fence)).toMatchObject({ status: 200, body: { status } });
    const row = await table.row(filename);
    expect(row).toMatchObject({ shard_worker_status: status, leased: false, worker: null });
    expect(await finish("shard-worker", transition, item, item.fence)).toMatchObject({ status: 200, body: { status } });
    expect(await table.row(filename)).toEqual(row);
  });

  test("is refused with a wrong fence or none, and changes nothing", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    const item = await claimOne("shard-worker");
    const before = await table.row(filename);
    expect(await finish("shard-worker", transition, item)).toMatchObject(LOST);
    expect(await finish("shard-worker", transition, item, String(BigInt(item.fence) + 1n))).toMatchObject(LOST);
    expect(await finish("shard-worker", transition, item, "999999999999999999")).toMatchObject(LOST);
    expect(await table.row(filename)).toEqual(before);
  });

  test("cannot be repeated without its fence", async () => {
    await table.put(reached("shard-worker", "new"));
    const item = await claimOne("shard-worker");
    await finish("shard-worker", transition, item, item.fence);
    expect(await finish("shard-worker", transition, item)).toMatchObject(LOST);
  });
});

describe("a repeated finish", () => {
  test("with the right fence is 200 even after the next stage has begun", async () => {
    const filename = await table.put(reached("shard-splitter", "new"));
    const first = await claimOne("shard-splitter");
    await finish("shard-splitter", "done", first, first.fence);
    const second = await claimOne("shard-worker");
    const before = await table.row(filename);
    expect(await finish("shard-splitter", "done", first, first.fence)).toMatchObject({
      status: 200,
      body: { status: "done" },
    });
    expect(await table.row(filename)).toEqual(before);
    expect(await finish("shard-worker", "done", second, second.fence)).toMatchObject({ status: 200 });
  });

  test("with the other outcome is 409: the first outcome stays", async () => {
    await table.put(reached("shard-splitter", "new"));
    const item = await claimOne("shard-splitter");
    await finish("shard-splitter", "fail", item, item.fence);
    expect(await finish("shard-splitter", "done", item, item.fence)).toMatchObject({
      status: 409,
      body: { code: "WRONG_STATUS", details: { status: "failed" } },
    });
  });

  test("is refused once the failure was retried, also while another worker holds the shard", async () => {
    const filename = await table.put(reached("shard-splitter", "new"));
    const first = await claimOne("shard-splitter");
    await finish("shard-splitter", "fail", first, first.fence);
    await post("/stages/shard-splitter/retry", { filename, shard: 0 });
    expect(await finish("shard-splitter", "fail", first, first.fence)).toMatchObject(LOST);
    const second = await claimOne("shard-splitter");
    expect(BigInt(second.fence)).toBeGreaterThan(BigInt(first.fence));
    expect(await finish("shard-splitter", "done", first, first.fence)).toMatchObject(LOST);
    expect(await table.row(filename)).toMatchObject({
      shard_splitter_status: "started",
      shard_splitter_fence: second.fence,
    });
  });
});

describe("a start without a lease", () => {
  test("is finished without a fence; a fence is refused", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    await post("/stages/shard-worker/start", { filename, shard: 0 });
    expect(await post("/stages/shard-worker/done", { filename, shard: 0, fence: "5" })).toMatchObject(LOST);
    expect(await post("/stages/shard-worker/done", { filename, shard: 0 })).toMatchObject({ status: 200 });
  });
});

describe("a heartbeat", () => {
  const beat = (items: object[], lease_seconds = 3_600) =>
    post("/queues/shard-worker/heartbeat", { items, lease_seconds });
  const held = ({ filename, shard, fence }: Claimed) => ({ filename, shard, fence });

  test("extends what is held and lists what is lost", async () => {
    const filename = await table.put(reached("shard-worker", "new"), { shards: [0, 1] });
    const items = await claim("shard-worker", { limit: 2, lease_seconds: 5 });
    const [kept, lost] = items.map(held);
    await post("/stages/shard-worker/done", lost);
    const answer = await beat([kept as object, lost as object]);
    const cell = (shard: number | undefined) => ({ filename, shard });
    expect([answer.status, answer.body]).toEqual([
      200,
      { stage: "shard-worker", items: [cell(kept?.shard)], lost: [cell(lost?.shard)] },
    ]);
    const [row] = await database.query<{ long: boolean }>(
      "select leased_until > now() + interval '1 h' - interval '1 min' as long from tracking.pipeline_tracking where shard = $1",
      [kept?.shard],
    );
    expect(row).toEqual({ long: true });
  });

  test("is 409 when everything is lost", async () => {
    await table.put(reached("shard-worker", "new"));
    const item = await claimOne("shard-worker");
    expect(await beat([{ ...held(item), fence: "1" }])).toMatchObject(LOST);
    expect(await beat([{ ...held(item), shard: 77 }])).toMatchObject(LOST);
  });

  test("renews a lease that expired but was not reclaimed yet", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    const item = await claimOne("shard-worker");
    await table.expire(filename);
    expect(await beat([held(item)])).toMatchObject({ status: 200, body: { lost: [] } });
  });

  test.each(["heartbeat", "release"])("or release (%s) that names a shard twice is 400", async (call) => {
    await table.put(reached("shard-worker", "new"));
    const item = held(await claimOne("shard-worker"));
    const answer = await post(`/queues/shard-worker/${call}`, { items: [item, { ...item, fence: "1" }] });
    expect(answer).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
  });
});

describe("a release", () => {
  test("puts shards back into the queue at once, without counting a loss, and ends the fence", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    const before = await table.row(filename);
    const item = await claimOne("shard-worker");
    const { fence, shard } = item;
    const release = () => post("/queues/shard-worker/release", { items: [{ filename, shard, fence }] });
    const answer = await release();
    expect([answer.status, answer.body]).toEqual([
      200,
      { stage: "shard-worker", items: [{ filename, shard }], lost: [] },
    ]);
    expect(await table.row(filename)).toEqual(before);
    expect(await finish("shard-worker", "done", item, fence)).toMatchObject(LOST);
    expect(await release()).toMatchObject(LOST);
    expect((await claimOne("shard-worker")).filename).toBe(filename);
  });
});
