/** Rewinds: the next generation of a cursor, with an audit row, and what is harvested after it. */
import { expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { endOf, type PlanReply } from "../harvest.fixture.ts";
import { correct, itemsOf, useScripted } from "../run/scripted.fixture.ts";
import { type Advance, lockCursor, moveForward } from "../store/cursors/cursors.ts";

const database = useDatabase();
const harvests = useScripted(database);

const items = ["2026-08-01", "2026-08-02", "2026-08-03"].flatMap((day) => itemsOf(3, day));
const rewind = (source: string, body: object, query = "") =>
  harvests.api.post(`/api/v1/harvest/cursors/${source}/items:rewind${query}`, { reason: "a bad deploy", ...body });
const cursor = async (source: string) =>
  (
    await database.query<{ value: string; generation: number }>(
      "select cursor_value as value, cursor_generation as generation from harvest.ing_cursor where provenance_code = $1",
      [source],
    )
  )[0];
const day = (number: number) => `2026-08-0${number}T00:00:00.000Z`;
/** A source whose first three days of August are harvested. */
async function harvested(): Promise<string> {
  const source = await harvests.source(correct(items), { window: { earliest: "2026-08-01", safetyLag: "PT0S" } });
  expect(await harvests.harvest(source, 3)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 9 } });
  return source;
}

test("a rewind begins the next generation, and what is behind it is harvested once more", async () => {
  const source = await harvested();
  expect(await cursor(source)).toEqual({ value: day(4), generation: 1 });
  const reply = await rewind(source, { to: "2026-08-02" });
  expect(reply).toMatchObject({ status: 200, body: { generation: 2, from: day(4), to: day(2), slices: 2 } });
  expect(await cursor(source)).toEqual({ value: day(2), generation: 2 });

  // A slice of the second generation moves it over its own window, and not over what was complete before.
  const one = await harvests.api.post<PlanReply>("/api/v1/harvest/plans", {
    source,
    window: { from: "2026-08-02", to: "2026-08-03" },
  });
  expect(await endOf(harvests.api, one.body.planId)).toMatchObject({ status: "COMPLETE" });
  expect(await cursor(source)).toEqual({ value: day(3), generation: 2 });

  const next = await harvests.api.post<PlanReply>("/api/v1/harvest/plans?dryRun=true", { source });
  expect(next.body["window"]).toMatchObject({ from: day(3) });
});

const shown = async (source: string) => {
  const { body } = await harvests.api.get<{ items: { stretches: { kind: string; from: string }[] }[] }>(
    `/api/v1/harvest/sources/${source}/coverage`,
  );
  return body.items[0]?.stretches.slice(0, 3).map(({ kind, from }) => [kind, from]);
};

test("the time behind it is shown as not harvested until it is harvested again", async () => {
  const source = await harvested();
  const [complete, missing] = ["complete", "none"];
  expect(await shown(source)).toEqual([
    [complete, day(1)],
    [missing, day(4)],
  ]);
  await rewind(source, { to: "2026-08-03" });
  await rewind(source, { to: "2026-08-02" });
  expect(await shown(source)).toEqual([
    [complete, day(1)],
    [missing, day(2)],
  ]);

  // The third day comes first: the second is still to be harvested, and the watermark stays before it.
  for (const [number, now] of [
    [
      3,
      [
        [complete, day(1)],
        [missing, day(2)],
        [complete, day(3)],
      ],
    ],
    [
      2,
      [
        [complete, day(1)],
        [missing, day(4)],
      ],
    ],
  ] as const) {
    const window = { from: `2026-08-0${number}`, to: `2026-08-0${number + 1}` };
    const made = await harvests.api.post<PlanReply>("/api/v1/harvest/plans", { source, window });
    expect(await endOf(harvests.api, made.body.planId)).toMatchObject({ status: "COMPLETE" });
    expect(await shown(source)).toEqual(now);
  }
});

test("a slice that failed before its plan was cancelled is no gap where the window was complete before", async () => {
  const source = await harvested();
  await rewind(source, { to: "2026-08-02" });
  harvests.server.on(source, () => ({ status: 400, body: {} }));
  const window = { from: "2026-08-02", to: "2026-08-03" };
  const { planId } = (await harvests.api.post<PlanReply>("/api/v1/harvest/plans", { source, window })).body;
  await endOf(harvests.api, planId);
  const gaps = async () => (await harvests.api.get(`/api/v1/harvest/plans/${planId}`)).body;
  expect(await gaps()).toMatchObject({ reconciliation: { gaps: 1 }, gapWindows: [{ status: "FAILED" }] });
  expect((await shown(source))?.[1]).toEqual(["gap", day(2)]);
  await database.query("update harvest.ing_plan set status_code = 'CANCELLED' where plan_id = $1", [planId]);
  expect(await gaps()).toMatchObject({ reconciliation: { gaps: 0 }, gapWindows: [] });
  expect((await shown(source))?.[1]).toEqual(["none", day(2)]);
});

test("a gap before it is no longer accepted, and one before the time that is sent back to stays so", async () => {
  const source = await harvests.source((asked) =>
    ["2026-08-01", "2026-08-03"].includes(asked.query.get("from") ?? "")
      ? { body: { nothing: true } }
      : correct(items)(asked),
  );
  const plan = await harvests.harvest(source, 3);
  for (const { sliceId } of plan["gapWindows"] as { sliceId: number }[]) {
    await harvests.api.post(`/api/v1/harvest/plans/${plan.planId}/slices/${sliceId}:accept`, { reason: "not needed" });
  }
  expect(await shown(source)).toEqual([
    ["accepted", day(1)],
    ["complete", day(2)],
    ["accepted", day(3)],
  ]);
  await rewind(source, { to: "2026-08-02" });
  expect(await shown(source)).toEqual([
    ["accepted", day(1)],
    ["none", day(2)],
  ]);
});

test("it leaves an audit row and its place in the history of the cursor", async () => {
  const source = await harvested();
  await rewind(source, { to: "2026-08-03T11:00:00Z" });
  const [row] = await database.query<{ actor: string; details: Json }>(
    "select actor, details from kernel.audit_log where action = 'cursor.rewind' and target = $1",
    [`${source}/items`],
  );
  expect(row).toMatchObject({
    actor: "MILLRACE_ADMIN_KEY",
    details: { generation: 2, from: day(4), to: day(3), operation: "HARVEST", reason: "a bad deploy" },
  });
  const { body } = await harvests.api.get<{ items: Json[] }>(`/api/v1/harvest/cursors/${source}/items/timeline`);
  expect(body.items[0]).toMatchObject({
    kind: "rewind",
    from: day(4),
    to: day(3),
    by: "MILLRACE_ADMIN_KEY",
    reason: "a bad deploy",
  });
  expect(body.items.slice(1).every(({ kind }) => kind === "advance")).toBe(true);
  expect(body.items.map(({ from }) => from)).toContain(null); // Slices that end together have no order.
});

test("in the history it comes behind the advance that it waited for", async () => {
  const source = await harvested();
  const [last] = await database.query<Advance>(
    `select provenance_code, operation_code, cursor_key, namespace_scope_code, namespace_key, plan_month::text as "planMonth",
            slice_id::text as "sliceId", generation + 1 as generation, plan_id as "planId", task_id::text as "taskId",
            run_id::text as "runId", schedule_instance_id as "scheduleInstanceId", expr_hash as "exprHash"
     from harvest.ing_cursor_event where provenance_code = $1 limit 1`,
    [source],
  );
  if (!last) throw new Error("the cursor has no event");
  let rewinding: ReturnType<typeof rewind> | undefined;
  await database.db.tx(async (tx) => {
    const present = await lockCursor(tx, last);
    rewinding = rewind(source, { to: "2026-08-02" });
    const waiting = "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'";
    await until(async () => (await database.query(waiting)).length > 0, "the rewind to wait");
    await moveForward(tx, { ...last, observedMax: null }, present, new Date(day(5)));
  });
  expect(await rewinding).toMatchObject({ status: 200, body: { from: day(5), to: day(2) } });
  const { body } = await harvests.api.get<{ items: Json[] }>(`/api/v1/harvest/cursors/${source}/items/timeline`);
  expect(body.items.slice(0, 2)).toMatchObject([
    { kind: "rewind", from: day(5) },
    { kind: "advance", to: day(5) },
  ]);
});

test("a dry run counts what would be harvested once more, and changes nothing", async () => {
  const source = await harvested();
  const reply = await rewind(source, { to: "2026-08-01" }, "?dryRun=true");
  expect(reply).toMatchObject({ status: 200, body: { generation: 2, to: day(1), slices: 3 } });
  expect(await cursor(source)).toEqual({ value: day(4), generation: 1 });
  expect(await database.query("select from harvest.cursor_rewind where provenance_code = $1", [source])).toEqual([]);
});

test("a cursor is not sent forward, and one that does not exist is named", async () => {
  const source = await harvested();
  expect(await rewind(source, { to: "2026-08-04" })).toMatchObject({
    status: 409,
    body: { code: "HARVEST_CURSOR_BEHIND", error: expect.stringContaining(`The cursor is at ${day(4)}`) as string },
  });
  expect(await cursor(source)).toEqual({ value: day(4), generation: 1 });
  expect(await rewind(source, { to: "yesterday" })).toMatchObject({ status: 400 });
  expect(await rewind(source, { to: "2026-08-01", reason: " " })).toMatchObject({ status: 400 });
  expect(
    await harvests.api.post(`/api/v1/harvest/cursors/${source}/item:rewind`, { to: "2026-08-01", reason: "x" }),
  ).toMatchObject({
    status: 404,
    body: { error: expect.stringContaining("Did you mean `items`?") as string },
  });
});

test("a backfill has a history of its own", async () => {
  const source = await harvests.source(correct(items));
  expect(await harvests.harvest(source, 3)).toMatchObject({ status: "COMPLETE" });
  const window = { from: "2026-07-30", to: "2026-08-01" };
  const made = await harvests.api.post<PlanReply>("/api/v1/harvest/plans", { source, operation: "BACKFILL", window });
  expect(await endOf(harvests.api, made.body.planId)).toMatchObject({ status: "COMPLETE" });
  const path = `/api/v1/harvest/cursors/${source}/items/timeline?operation=BACKFILL`;
  const { body } = await harvests.api.get<{ items: Json[] }>(path);
  expect(body.items.every(({ kind }) => kind === "advance")).toBe(true);
  expect(body.items.map(({ to }) => to)).toContain("2026-07-30T00:00:00.000Z");
});

test("the history shows gaps, and who accepted them", async () => {
  const source = await harvests.source((asked) =>
    asked.query.get("from") === "2026-08-02" ? { body: { nothing: true } } : correct(items)(asked),
  );
  const plan = await harvests.harvest(source, 3);
  const [gap] = plan["gapWindows"] as { sliceId: number }[];
  await harvests.api.post(`/api/v1/harvest/plans/${plan.planId}/slices/${gap?.sliceId}:accept`, {
    reason: "not needed",
  });
  const { body } = await harvests.api.get<{ items: Json[] }>(`/api/v1/harvest/cursors/${source}/items/timeline`);
  const of = (kind: string) => body.items.find((item) => item["kind"] === kind);
  expect(of("gap")).toMatchObject({ from: day(2), to: day(3), sliceId: gap?.sliceId, planId: plan.planId });
  expect(of("accepted")).toMatchObject({ by: "MILLRACE_ADMIN_KEY", reason: "not needed" });
  expect(of("advance")).toMatchObject({ to: day(4) });
});
