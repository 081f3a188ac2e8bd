/** Backfills beside harvests: they make way, they lose nothing, and they never bring back an older version of a record. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openHintStream } from "../../../test/hint-stream.ts";
import { until } from "../../../test/until.ts";
import { endOf, plan } from "../harvest.fixture.ts";
import type { ClaimedTask } from "../store/queue/tasks.ts";
import { createShare } from "./background.ts";
import { type Asked, correct, itemsOf, type Script, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database, { MILLRACE_LAKE_DIR: mkdtempSync(join(tmpdir(), "millrace-lake-")) });

const DAYS = { from: "2026-08-01", to: "2026-08-03" };
const backfill = async (source: string, window: object = DAYS) =>
  (await plan(harvests.api, { source, operation: "BACKFILL", window })).planId;
const harvestOf = async (source: string, window: object) => (await plan(harvests.api, { source, window })).planId;

/** A signal that a test waits for, or gives. */
function signal() {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

/** Answers as `script` does, but keeps the answers to some requests until they are let go. */
function heldBack(script: Script, isHeld: (request: Asked) => boolean) {
  const [asked, released] = [signal(), signal()];
  const held: Script = async (request) => {
    const answer = await script(request);
    if (!isHeld(request)) return answer;
    asked.give();
    await released.given;
    return answer;
  };
  return { held, asked: asked.given, release: released.give };
}

const dayOf = ({ query }: Asked) => query.get("from") ?? "";
const offsetOf = ({ query }: Asked) => Number(query.get("offset"));

describe("a harvest that comes while a backfill runs", () => {
  test("has its source for itself after the pages that are under way, and both are complete", async () => {
    const items = [...itemsOf(35), ...itemsOf(35, "2026-08-02"), ...itemsOf(25, "2026-08-05")];
    const page = heldBack(correct(items), (request) => dayOf(request) < "2026-08-05" && offsetOf(request) === 10);
    const harvested = heldBack(page.held, (request) => dayOf(request) === "2026-08-05" && offsetOf(request) === 10);
    const source = await harvests.source(harvested.held);
    const back = await backfill(source);
    await page.asked;
    const forth = await harvestOf(source, { from: "2026-08-05", to: "2026-08-06" });
    await harvested.asked;
    page.release();
    const waiting = await until(async () => {
      const rows = await database.query<{ reason: string }>(
        "select wait_reason as reason from harvest.ing_task where plan_id = $1 and status_code = 'QUEUED' and wait_reason is not null",
        [back],
      );
      return rows.length === 2 && rows;
    }, "both tasks of the backfill to wait");
    const reason = `a harvest of ${source} goes first`;
    expect(waiting).toEqual([{ reason }, { reason }]);
    const before = harvests.server.asked(source).length;
    // Due again, they are still not claimed.
    await harvests.makeDue(back);
    harvested.release();
    expect(await endOf(harvests.api, forth)).toMatchObject({ status: "COMPLETE", reconciliation: { inserted: 25 } });
    expect(await endOf(harvests.api, back)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 70 } });
    const days = harvests.server.asked(source).slice(before).map(dayOf);
    expect(days.slice(0, days.lastIndexOf("2026-08-05") + 1)).toEqual(days.filter((day) => day === "2026-08-05"));
    expect(await harvests.keys(source)).toHaveLength(95);
  });

  test("is not held up by a harvest that itself waits for later", async () => {
    const source = await harvests.source((request) =>
      dayOf(request) === "2026-08-05"
        ? { status: 429, headers: { "retry-after": "3600" }, body: {} }
        : correct(itemsOf(5))(request),
    );
    const forth = await harvestOf(source, { from: "2026-08-05", to: "2026-08-06" });
    await harvests.waits(forth);
    // The source has closed its gate for both. Opened, it would let the harvest ask again and be closed again, so the harvest
    // waits for something else first.
    await database.query("update harvest.ing_task set wait_gate = null where plan_id = $1", [forth]);
    await harvests.api.post(`/api/v1/gates/${source}:open`, {});
    expect(await endOf(harvests.api, await backfill(source))).toMatchObject({ status: "COMPLETE" });
  });
});

describe("a backfill that divides a slice into parts stops between two counts", () => {
  const KINDS = ["book", "article", "other"];
  const divided = {
    window: { recordsMax: 20 },
    slicing: { ladder: [{ name: "kind", type: "VALUES", values: KINDS, fragment: "${range.value}" }] },
    http: {
      query: {
        from: "${window.from}",
        to: "${window.to}",
        offset: "${page.offset}",
        size: "${page.size}",
        kind: "${parts.kind}",
      },
    },
  };
  /** Fifteen records of each kind on the first of August, and five of one kind on the fifth. */
  const items = KINDS.flatMap((kind) => itemsOf(15).map((item) => ({ ...item, id: `${kind} ${item.id}`, kind })));
  const script: Script = (request) => {
    const kind = request.query.get("kind");
    const found = items.filter((item) => kind === null || item.kind === kind);
    return correct([...found, ...itemsOf(5, "2026-08-05")])(request);
  };
  const kindOf = ({ query }: Asked) => query.get("kind");
  async function dividing(also: Script = script) {
    const count = heldBack(also, (request) => kindOf(request) === "book");
    const source = await harvests.source(count.held, divided);
    const planId = await backfill(source, { from: "2026-08-01", to: "2026-08-02" });
    await count.asked;
    const isCompleted = async () => {
      expect(await endOf(harvests.api, planId)).toMatchObject({
        status: "COMPLETE",
        reconciliation: { expected: 45, received: 45, gaps: 0 },
      });
      // What was counted before the stop is not counted again.
      const asked = harvests.server.asked(source).map(kindOf);
      expect(asked.filter((kind) => kind === "book")).toHaveLength(asked.filter((kind) => kind === "article").length);
    };
    return { source, planId, release: count.release, isCompleted };
  }

  test("for a harvest of its source", async () => {
    const harvested = heldBack(script, (request) => dayOf(request) === "2026-08-05");
    const { source, planId, release, isCompleted } = await dividing(harvested.held);
    const forth = await harvestOf(source, { from: "2026-08-05", to: "2026-08-06" });
    await harvested.asked;
    release();
    expect(await harvests.waits(planId)).toMatchObject({ reason: `a harvest of ${source} goes first` });
    expect(harvests.server.asked(source).map(kindOf)).not.toContain("article");
    harvested.release();
    expect(await endOf(harvests.api, forth)).toMatchObject({ status: "COMPLETE" });
    await isCompleted();
  });

  test("for a pause", async () => {
    const { source, planId, release, isCompleted } = await dividing();
    await harvests.api.post(`/api/v1/harvest/sources/${source}:pause`, {});
    // By the end of another harvest, the process knows of the pause.
    expect(await harvests.harvest(await harvests.source(correct(itemsOf(1))))).toMatchObject({ status: "COMPLETE" });
    release();
    expect(await harvests.waits(planId)).toMatchObject({ reason: "it was paused" });
    expect(harvests.server.asked(source).map(kindOf)).not.toContain("article");
    await harvests.api.post(`/api/v1/harvest/sources/${source}:resume`, {});
    await isCompleted();
  });
});

describe("an update stops between two pages of details", () => {
  const items = itemsOf(25);
  const ids = items.map(({ id }) => id);
  const isDetail = ({ path }: Asked) => path === "/byid";
  const detailsAsked = (source: string) => harvests.server.asked(source).filter(isDetail).length;

  /** A harvested source whose update is under way: the answer to its second page of details is held back. */
  async function updating(script: Script) {
    const details: Script = ({ query }) => ({
      body: { items: (query.get("ids") ?? "").split(",").map((id) => ({ id })) },
    });
    let pages = 0;
    const second = heldBack(details, () => (pages += 1) === 2);
    const source = await harvests.source((request) => (isDetail(request) ? second.held(request) : script(request)));
    await harvests.applyEndpoints(
      source,
      { detail: "byid" },
      {
        byid: {
          role: "DETAIL",
          path: "/byid",
          http: { query: { ids: '${ids.join(",")}' } },
          response: { itemsPath: "$.items", idPath: "$.id" },
          batching: { idBatchSize: 5 },
          rateLimit: { keys: [source], refillRatePerSec: 5_000, providerRatePerSec: 5_000, burstCapacity: 100 },
        },
      },
    );
    await endOf(harvests.api, await harvestOf(source, { from: "2026-08-01", to: "2026-08-02" }));
    const { planId } = await plan(harvests.api, { source, operation: "UPDATE", ids });
    await second.asked;
    return { source, planId, release: second.release };
  }

  test("for a harvest that is due, and goes on after it", async () => {
    const harvested = heldBack(
      correct([...items, ...itemsOf(5, "2026-08-05")]),
      (request) => dayOf(request) === "2026-08-05",
    );
    const { source, planId, release } = await updating(harvested.held);
    const forth = await harvestOf(source, { from: "2026-08-05", to: "2026-08-06" });
    await harvested.asked;
    release();
    expect(await harvests.waits(planId)).toMatchObject({ reason: `a harvest of ${source} goes first` });
    expect(detailsAsked(source)).toBe(2);
    harvested.release();
    expect(await endOf(harvests.api, forth)).toMatchObject({ status: "COMPLETE" });
    expect(await endOf(harvests.api, planId)).toMatchObject({
      status: "COMPLETE",
      reconciliation: { expected: 25, received: 25 },
    });
    expect(detailsAsked(source)).toBe(5);
  });

  test("for a pause, and goes on when it is resumed", async () => {
    const { source, planId, release } = await updating(correct(items));
    const path = `/api/v1/harvest/sources/${source}`;
    expect((await harvests.api.post(`${path}:pause`, { operation: "UPDATE" })).status).toBe(200);
    release();
    expect(await harvests.waits(planId)).toMatchObject({ reason: "it was paused" });
    expect(detailsAsked(source)).toBe(2);
    expect((await harvests.api.post(`${path}:resume`, { operation: "UPDATE" })).status).toBe(200);
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 25 } });
    expect(detailsAsked(source)).toBe(5);
  });
});

describe("a version that was asked for earlier", () => {
  /** Times of whole days, as many sources have them: they do not say which of two versions of a day is the newer one. */
  test.each(["2026-08-01", undefined])(
    "does not replace a later one that came before it (time %s)",
    async (updated) => {
      const items = (text: string) => [{ id: "a", text, ...(updated === undefined ? {} : { updated }) }];
      const page = (text: string) => ({ body: { total: 1, items: items(text) } });
      const [asked, released] = [signal(), signal()];
      let requests = 0;
      const source = await harvests.source(
        async () => {
          requests += 1;
          if (requests > 1) return page("new");
          asked.give();
          await released.given;
          return page("old");
        },
        updated === undefined ? { response: { updatedAtPath: undefined } } : {},
      );
      const window = { from: "2026-08-01", to: "2026-08-02" };
      const back = await backfill(source, window);
      await asked.given;
      await endOf(harvests.api, await harvestOf(source, window));
      released.give();
      expect(await endOf(harvests.api, back)).toMatchObject({ status: "COMPLETE", reconciliation: { unchanged: 1 } });
      const rows = await database.query(
        `select r.version, r.data ->> 'text' as text from harvest.record r
       join harvest.reg_prov_endpoint_def e using (endpoint_id) where e.provenance_code = $1`,
        [source],
      );
      expect(rows).toEqual([{ version: 1, text: "new" }]);
    },
  );
});

test("the windows of a backfill land, and its cursor is where it came to", async () => {
  const table = `backfilled_${Math.random().toString(36).slice(2)}`;
  const source = await harvests.source(correct([...itemsOf(3), ...itemsOf(4, "2026-08-02")]), {
    landing: { table, grain: "day" },
  });
  const planId = await backfill(source);
  expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
  const landed = await until(async () => {
    const rows = await database.query<{ op_time: string; rows: number }>(
      "select op_time, rows::int from harvest.landing where table_name = $1 and status_code = 'LANDED' order by 1",
      [table],
    );
    return rows.length === 2 && rows;
  }, "two windows that have landed");
  expect(landed).toEqual([
    { op_time: "20260801", rows: 3 },
    { op_time: "20260802", rows: 4 },
  ]);
  const { body } = await harvests.api.get(`/api/v1/harvest/cursors?source=${source}`);
  expect(body).toMatchObject({
    items: [{ operation: "BACKFILL", scope: "CUSTOM", namespace: "items", value: "2026-08-01T00:00:00.000Z", planId }],
  });
  const events = await harvests.api.get<{ items: { direction: string; from: string | null }[] }>(
    `/api/v1/harvest/cursors/${source}/items/events?operation=BACKFILL`,
  );
  expect(events.body.items.at(-1)).toMatchObject({ direction: "BACKFILL", from: null });
});

test("a backfill whose process ends goes on in another, and pages know that it waits until then", async () => {
  const later = { status: 429, headers: { "retry-after": "3600" }, body: {} };
  let isOpen = false;
  const source = await harvests.source((request) =>
    offsetOf(request) === 0 || isOpen ? correct(itemsOf(25))(request) : later,
  );
  const planId = await backfill(source, { from: "2026-08-01", to: "2026-08-02" });
  await harvests.waits(planId);
  isOpen = true;
  const stream = await openHintStream(harvests.millrace.url);
  // Before the gate opens: the task would run otherwise, and could end before its process dies.
  await harvests.api.post(`/api/v1/harvest/sources/${source}:pause`, {});
  await harvests.api.post(`/api/v1/gates/${source}:open`, {});
  await stream.hint("gate", source);
  const before = stream.hints.length;
  // It has closed its session, because the death of a process is a gap in the stream, and a gap may stand for the hint.
  await database.query(
    `with dead as (insert into kernel.session (process, roles, version, expires_at, closed_at)
                   values ('dead', '{}', '1', now() - interval '1 second', now()) returning id)
     update harvest.ing_task set status_code = 'EXECUTING', session_id = dead.id, fence = nextval('kernel.fence'), scheduled_at = null,
       wait_reason = null, wait_gate = null from dead where plan_id = $1 and finished_at is null`,
    [planId],
  );
  await stream.hint("plan", planId, before);
  await harvests.api.post(`/api/v1/harvest/sources/${source}:resume`, {});
  expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 25 } });
}, 60_000);

describe("the share of slots", () => {
  const task = (fence: string, operation: string) =>
    ({ fence, partition_key: `src/works/${operation}` }) as ClaimedTask;
  /** Claims in the order of priority from these queues. */
  const queueOf = (harvest: number, back: number) => {
    let fence = 0;
    let [forth, past] = [harvest, back];
    return async (limit: number, only: (key: string) => boolean = () => true) => {
      const claimed: ClaimedTask[] = [];
      while (claimed.length < limit && forth > 0) {
        forth -= 1;
        claimed.push(task(`h${(fence += 1)}`, "HARVEST"));
      }
      while (claimed.length < limit && past > 0 && only("src/works/BACKFILL")) {
        past -= 1;
        claimed.push(task(`b${(fence += 1)}`, "BACKFILL"));
      }
      return claimed;
    };
  };
  const operations = (tasks: readonly ClaimedTask[]) =>
    tasks.map(({ partition_key }) => partition_key.split("/")[2]?.[0]).join("");

  test("leaves a quarter to HARVEST, however many backfills are queued", async () => {
    const share = createShare(8);
    const queue = queueOf(0, 100);
    const first = await share.claim(8, queue);
    expect(operations(first)).toBe("BBBBBB");
    expect(await share.claim(2, queue)).toEqual([]);
    expect(operations(await share.claim(2, queueOf(5, 100)))).toBe("HH");
    share.ended(first[0]?.fence ?? "");
    expect(operations(await share.claim(3, queue))).toBe("B");
  });

  test("takes harvests first, and both where there is room", async () => {
    expect(operations(await createShare(8).claim(8, queueOf(7, 5)))).toBe("HHHHHHH");
    expect(operations(await createShare(8).claim(8, queueOf(3, 5)))).toBe("HHHBBB");
  });

  test("asks once where little is due", async () => {
    let asked = 0;
    const queue = queueOf(1, 1);
    await createShare(16).claim(16, (limit, only) => {
      asked += 1;
      return queue(limit, only);
    });
    expect(asked).toBe(1);
  });

  test("is kept by a process: a harvest of another source runs beside backfills that would take every slot", async () => {
    const page = heldBack(correct(itemsOf(1)), () => true);
    const source = await harvests.source(page.held, { budget: { concurrency: 60 } });
    const back = await backfill(source, { from: "2026-07-01", to: "2026-07-31" });
    await until(async () => {
      const running = "select from harvest.ing_task where plan_id = $1 and status_code = 'EXECUTING'";
      return (await database.query(running, [back])).length >= 12;
    }, "backfills in three quarters of the slots");
    const other = await harvests.source(correct(itemsOf(1)));
    expect(await harvests.harvest(other)).toMatchObject({ status: "COMPLETE" });
    page.release();
    expect(await endOf(harvests.api, back)).toMatchObject({ status: "COMPLETE" });
  });

  test("is the only slot where there is one", async () => {
    expect(operations(await createShare(1).claim(1, queueOf(0, 3)))).toBe("B");
  });
});
