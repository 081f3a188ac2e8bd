/**
 * Random commands against the module and an in-memory model of it. After each command every row must match the model, and
 * at the end the summary too. A failure prints the seed and the shortest commands that reproduce it.
 */

import fc from "fast-check";
import { expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { noHints } from "../../test/no-hints.ts";
import { reached, type Statuses, trackingTable } from "../../test/tracking.ts";
import { type CellKey, createModel, indexOf, keyOf, type Model } from "../../test/tracking-model.ts";
import { statement } from "../kernel/data/statement.ts";
import { ApiError } from "../kernel/errors.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { createWake } from "../kernel/work/wake.ts";
import { CATALOGUE } from "./catalogue.ts";
import { type FileTransition, QUEUE_STAGES, type QueueStage, STAGES, type Status, type Transition } from "./states.ts";
import { summary } from "./summary.ts";
import { createTracking, type Move, type Moved, type Tracking } from "./tracking.ts";

const RUNS = process.env["MILLRACE_TEST_LONG"] ? 2_000 : 60;
const LOST_LIMIT = 2;
const SHARDS = [0, 1, 2];
const TIME_LIMIT_MS = 600_000;

const database = useDatabase();
const table = trackingTable(database);

/** A move, heartbeat or release with the present fence, a former one, or none. */
interface MoveSpec extends CellKey {
  worker: string | undefined;
  fence: "right" | "spent" | "none";
}
type Command =
  | { kind: "register"; filename: string; shards: number[] }
  | { kind: "moveFile"; transition: FileTransition; filename: string }
  | { kind: "move"; stage: QueueStage; transition: Transition; moves: MoveSpec[]; batch: boolean }
  | { kind: "claim"; stage: QueueStage; worker: string; limit: number }
  | { kind: "heartbeat" | "release"; stage: QueueStage; held: MoveSpec }
  | { kind: "expire"; filename: string }
  | { kind: "reclaim" };

/** Each run starts with file `a` in a random state, which commands alone would seldom reach, and without `b`. */
function anyPlaces(): fc.Arbitrary<Statuses[]> {
  const place = fc.tuple(
    fc.constantFrom(...STAGES),
    fc.constantFrom<Status>("new", "new", "started", "failed", "done"),
  );
  const legal = place.filter(([stage, status]) => stage !== "event-ingest" || status !== "new");
  const statuses = legal.map(([stage, status]) => reached(stage, status));
  return fc.array(statuses, { minLength: SHARDS.length, maxLength: SHARDS.length });
}

function anyCommands(): fc.Arbitrary<Command[]> {
  const filename = fc.constantFrom("a", "a", "a", "b");
  const shard = fc.constantFrom(...SHARDS);
  const stage = fc.constantFrom(...QUEUE_STAGES);
  const worker = fc.constantFrom("w1", "w2");
  const held = fc.record({
    filename,
    shard,
    worker: fc.option(worker, { nil: undefined }),
    fence: fc.constantFrom("right" as const, "right" as const, "spent" as const, "none" as const),
  });
  const limit = fc.integer({ min: 1, max: 4 });
  const shards = fc.array(shard, { minLength: 1, maxLength: 3 });
  const moves = fc.uniqueArray(held, { minLength: 1, maxLength: 4, selector: keyOf });
  const kind = <const Kind extends Command["kind"]>(...kinds: Kind[]) => fc.constantFrom(...kinds);
  const fileTransition = fc.constantFrom<FileTransition>("done", "done", "fail", "retry");
  const transition = fc.constantFrom<Transition>("start", "done", "done", "fail", "retry");
  const command = fc.oneof(
    { weight: 1, arbitrary: fc.record({ kind: kind("register"), filename, shards }) },
    { weight: 2, arbitrary: fc.record({ kind: kind("moveFile"), transition: fileTransition, filename }) },
    { weight: 10, arbitrary: fc.record({ kind: kind("move"), stage, transition, moves, batch: fc.boolean() }) },
    { weight: 6, arbitrary: fc.record({ kind: kind("claim"), stage, worker, limit }) },
    { weight: 3, arbitrary: fc.record({ kind: kind("heartbeat", "release"), stage, held }) },
    { weight: 2, arbitrary: fc.record({ kind: kind("expire"), filename }) },
    { weight: 2, arbitrary: fc.record({ kind: kind("reclaim") }) },
  );
  return fc.array(command, { minLength: 20, maxLength: 50, size: "max" });
}

test("random commands leave exactly what the rules say", { timeout: 2 * TIME_LIMIT_MS }, async () => {
  const { db } = database;
  const wake = createWake();
  const settings = { lostLimit: LOST_LIMIT, stageTimeoutSeconds: {}, keepDays: 365 };
  const tracking = createTracking({
    db,
    wake,
    hints: noHints,
    metrics: createMetrics().define(CATALOGUE.metrics),
    settings,
  });
  const property = fc.asyncProperty(anyPlaces(), anyCommands(), async (places, commands) => {
    await table.clear();
    const model = createModel({ lostLimit: LOST_LIMIT });
    await run(tracking, model, { kind: "register", filename: "a", shards: SHARDS }, -1);
    for (const [shard, statuses] of places.entries()) await putInto(model, shard, statuses);
    for (const [step, command] of commands.entries()) {
      await run(tracking, model, command, step);
      expect(await table.rows(), `after step ${step}, ${command.kind}`).toEqual(model.rows());
    }
    expect(await summary(db)).toEqual(model.summary());
  });
  await fc.assert(property, { numRuns: RUNS, interruptAfterTimeLimit: TIME_LIMIT_MS });
});

const PUT_INTO = statement(
  "test.model.put_into",
  `update tracking.pipeline_tracking set event_ingest_status = $2, shard_splitter_status = $3, shard_worker_status = $4,
     mysql_sender_status = $5 where filename = 'a' and shard = $1`,
);

async function putInto(model: Model, shard: number, statuses: Statuses): Promise<void> {
  model.put({ filename: "a", shard }, statuses);
  await database.db.rows(PUT_INTO, [shard, ...statuses]);
}

async function run(tracking: Tracking, model: Model, command: Command, step: number): Promise<void> {
  switch (command.kind) {
    case "register": {
      const { filename, shards } = command;
      expect(await tracking.register(filename, shards)).toEqual(model.register(filename, shards, step));
      return;
    }
    case "moveFile": {
      const { transition, filename } = command;
      expect(await settled(tracking.moveFile(transition, filename))).toEqual(model.moveFile(transition, filename));
      return;
    }
    case "move": {
      const { stage, transition, batch } = command;
      const moves = command.moves.map((spec) => toMove(model, stage, spec));
      const expected = moves.map((move) => model.move(stage, transition, move));
      const outcomes = batch
        ? await tracking.moveAll(stage, transition, moves)
        : await Promise.all(moves.map((move) => settled(tracking.move(stage, transition, move))));
      expect(outcomes.map(comparable)).toEqual(expected);
      return;
    }
    case "claim": {
      const { stage, worker, limit } = command;
      const expected = model.ready(stage).slice(0, limit);
      const items = await tracking.claim(stage, { limit, worker, leaseSeconds: 60 });
      expect(items.map(keyOf).sort()).toEqual(expected.map(keyOf).sort());
      for (const item of items) {
        const past = model.get(item)?.pastFences.map(BigInt) ?? [];
        expect(past.every((fence) => fence < BigInt(item.fence))).toBe(true);
        model.claimed(stage, item, worker);
      }
      return;
    }
    case "heartbeat":
    case "release": {
      const { kind, stage, held } = command;
      const { filename, shard, fence } = toMove(model, stage, held);
      if (fence === undefined) return; // The API requires it.
      const item = { filename, shard, fence };
      const call = kind === "heartbeat" ? tracking.heartbeat(stage, [item], 60) : tracking.release(stage, [item]);
      expect((await call).length === 1).toBe(model.holding(stage, kind, item));
      return;
    }
    case "expire":
      model.expire(command.filename);
      await table.expire(command.filename);
      return;
    case "reclaim":
      expect(await tracking.reclaim()).toEqual(model.reclaim());
      return;
  }
}

function toMove(model: Model, stage: QueueStage, { filename, shard, worker, fence }: MoveSpec): Move {
  const cell = model.get({ filename, shard });
  const fences = { right: cell?.fences[indexOf(stage)], spent: cell?.pastFences.at(-1) ?? "1", none: undefined };
  const sent = fences[fence] ?? undefined;
  return { filename, shard, ...(worker ? { worker } : {}), ...(sent ? { fence: sent } : {}) };
}

function settled<T>(promise: Promise<T>): Promise<T | string> {
  return promise.catch((error: unknown) => {
    if (error instanceof ApiError) return error.code;
    throw error;
  });
}

function comparable(outcome: Moved | ApiError | string): unknown {
  if (outcome instanceof ApiError) return outcome.code;
  return typeof outcome === "string" ? outcome : { status: outcome.status, changed: outcome.changed };
}
