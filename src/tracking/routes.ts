/** The pipeline API under `/api/v1/pipeline`: validate, call one use case, shape the reply. */
import type { FastifyReply } from "fastify";
import type { Db } from "../kernel/data/db.ts";
import { ApiError, invalid, kernelError } from "../kernel/errors.ts";
import { errors } from "../kernel/http/schemas.ts";
import type { Http } from "../kernel/http/server.ts";
import { didYouMean } from "../kernel/nearest.ts";
import { trackingError } from "./catalogue.ts";
import type { LongPoll } from "./long-poll.ts";
import * as schemas from "./schemas.ts";
import { FILE_TRANSITIONS, QUEUE_STAGES, type QueueStage, STAGES, TRANSITIONS } from "./states.ts";
import { summary } from "./summary.ts";
import { identity, type Move, type Moved, type Tracking } from "./tracking.ts";
import { withoutNulls } from "./without-nulls.ts";

export function trackingRoutes(http: Http, deps: { db: Db; tracking: Tracking; longPoll: LongPoll }): void {
  const { db, tracking, longPoll } = deps;
  const read = { scope: "pipeline:read" } as const;
  const write = { scope: "pipeline:write" } as const;
  const tags = ["pipeline"];

  http.post(
    "/files/register",
    {
      config: write,
      schema: {
        tags,
        summary: "Register a file, or add shards to it",
        body: schemas.RegisterBody,
        response: { 200: schemas.RegisterReply, ...errors(400) },
      },
    },
    async ({ body: { filename, shards } }) => {
      const { created } = await tracking.register(filename, shards);
      return { filename, shards, created };
    },
  );

  http.post(
    "/stages/event-ingest/:transition",
    {
      config: write,
      schema: {
        tags,
        summary: "Finish, fail or retry the ingest of a whole file",
        params: schemas.FileMoveParams,
        body: schemas.FileMoveBody,
        response: { 200: schemas.FileMoveReply, ...errors(400, 404, 409) },
      },
    },
    async ({ params, body: { filename, error } }) => {
      const transition = oneOf(FILE_TRANSITIONS, params.transition, (allowed, hint) =>
        unknownTransition(
          "event-ingest",
          params.transition,
          allowed,
          params.transition === "start" ? " Registering a file starts it." : hint,
        ),
      );
      const { updatedRows } = await tracking.moveFile(transition, filename, error);
      return { filename, updated_rows: updatedRows };
    },
  );

  http.post(
    "/stages/:stage/:transition",
    {
      config: write,
      schema: {
        tags,
        summary: "Start, finish, fail or retry one shard, or many",
        params: schemas.MoveParams,
        body: schemas.MoveBody,
        response: { 200: schemas.MoveReply, ...errors(400, 404, 409) },
      },
    },
    async ({ params, body }) => {
      const stage = shardStage(params.stage);
      const transition = oneOf(TRANSITIONS, params.transition, (allowed, hint) =>
        unknownTransition(stage, params.transition, allowed, hint),
      );
      if (body.items === undefined) {
        const { filename, shard, status } = await tracking.move(stage, transition, singleMove(body));
        return { filename, shard, stage, status };
      }
      const moves = manyMoves(body);
      const outcomes = await tracking.moveAll(stage, transition, moves);
      const items = outcomes.map((outcome, index) => batchItem(stage, moves[index] as Move, outcome));
      const changed = outcomes.filter((outcome) => !(outcome instanceof ApiError) && outcome.changed);
      return { stage, updated_rows: changed.length, items };
    },
  );

  http.get(
    "/queues/:stage",
    {
      config: read,
      schema: {
        tags,
        summary: "List what is ready for a stage, oldest first",
        params: schemas.QueueParams,
        querystring: schemas.QueueQuery,
        response: { 200: schemas.QueueReply, ...errors(400) },
      },
    },
    async ({ params, query: { limit, offset, updated_after } }) => {
      const stage = queueStage(params.stage);
      const updatedAfter = updated_after === undefined ? null : new Date(updated_after.replace(" ", "+"));
      const items = await tracking.queue(stage, { limit, offset, updatedAfter });
      return { stage, items };
    },
  );

  http.post(
    "/queues/:stage/claim",
    {
      config: write,
      schema: {
        tags,
        summary: "Lease shards and start them; with `wait_seconds`, wait for work",
        params: schemas.QueueParams,
        body: schemas.ClaimBody,
        response: { 200: schemas.ClaimReply, ...errors(400) },
      },
    },
    async (request, reply) => {
      const { limit, worker, lease_seconds, wait_seconds } = request.body;
      const stage = queueStage(request.params.stage);
      const disconnected = disconnectSignal(reply);
      const items = await longPoll.claim(stage, {
        limit,
        worker,
        leaseSeconds: lease_seconds,
        waitSeconds: wait_seconds,
        signal: wait_seconds === 0 ? disconnected : AbortSignal.any([disconnected, request.accessEnds()]),
      });
      return { stage, items };
    },
  );

  http.post(
    "/queues/:stage/heartbeat",
    {
      config: write,
      schema: {
        tags,
        summary: "Extend leases",
        params: schemas.QueueParams,
        body: schemas.HeartbeatBody,
        response: { 200: schemas.HeldReply, ...errors(400, 409) },
      },
    },
    async ({ params, body: { items, lease_seconds } }) => {
      const stage = queueStage(params.stage);
      return heldReply(stage, items, await tracking.heartbeat(stage, refuseRepeated(items), lease_seconds));
    },
  );

  http.post(
    "/queues/:stage/release",
    {
      config: write,
      schema: {
        tags,
        summary: "Return claimed shards to the queue",
        params: schemas.QueueParams,
        body: schemas.ReleaseBody,
        response: { 200: schemas.HeldReply, ...errors(400, 409) },
      },
    },
    async ({ params, body: { items } }) => {
      const stage = queueStage(params.stage);
      return heldReply(stage, items, await tracking.release(stage, refuseRepeated(items)));
    },
  );

  http.get(
    "/files",
    {
      config: read,
      schema: {
        tags,
        summary: "List files, newest first",
        description: "`total` is counted up to 10,000. A `stage` without a `status` means started or failed there.",
        querystring: schemas.FilesQuery,
        response: { 200: schemas.FilesReply, ...errors(400) },
      },
    },
    async ({ query: { page, size, stage, status, q } }) => {
      const { items, total } = await tracking.files(
        { stage, status, prefix: q ?? "" },
        { size, offset: (page - 1) * size },
      );
      return { items, page, size, total };
    },
  );

  http.get(
    "/files/:filename",
    {
      config: read,
      schema: {
        tags,
        summary: "Show the status of every shard of a file",
        params: schemas.FileParams,
        response: { 200: schemas.FileReply, ...errors(400, 404) },
      },
    },
    async ({ params: { filename } }) => {
      const shards = await tracking.shards(filename);
      return { filename, shards: shards.map(withoutNulls) };
    },
  );

  http.get(
    "/metrics/summary",
    {
      config: read,
      schema: {
        tags,
        summary: "Totals by stage and by shard",
        response: { 200: schemas.SummaryReply },
      },
    },
    () => summary(db),
  );
}

function oneOf<Word extends string>(
  words: readonly Word[],
  word: string,
  problem: (allowed: string, hint: string) => ApiError,
): Word {
  const known = words.find((candidate) => candidate === word);
  if (known === undefined) throw problem(namesOf(words), didYouMean(word, words));
  return known;
}

function namesOf(words: readonly string[]): string {
  return words.map((name) => `\`${name}\``).join(", ");
}

function queueStage(word: string): QueueStage {
  return oneOf(QUEUE_STAGES, word, (allowed, near) => {
    const hint = word === "event-ingest" ? " Event-ingest applies to a whole file and has no queue." : near;
    return trackingError("STAGE_UNKNOWN", { stage: word }, { allowed, hint });
  });
}

/** Of a route beside that of `event-ingest`. */
function shardStage(word: string): QueueStage {
  const stage = QUEUE_STAGES.find((known) => known === word);
  if (stage !== undefined) return stage;
  throw trackingError("STAGE_UNKNOWN", { stage: word }, { allowed: namesOf(STAGES), hint: didYouMean(word, STAGES) });
}

function unknownTransition(stage: string, transition: string, allowed: string, hint: string): ApiError {
  return trackingError("TRANSITION_UNKNOWN", { stage, transition }, { allowed, hint });
}

function singleMove({ filename, shard, worker, fence, error }: schemas.MoveBody): Move {
  const missing = filename === undefined ? "filename" : shard === undefined ? "shard" : undefined;
  if (filename === undefined || shard === undefined) {
    throw kernelError(
      "VALIDATION_FAILED",
      {},
      { reason: `The body lacks the field \`${missing}\` (or \`items\` for many shards)` },
    );
  }
  return {
    filename,
    shard,
    ...(worker === undefined ? {} : { worker }),
    ...(fence === undefined ? {} : { fence }),
    ...(error === undefined ? {} : { error }),
  };
}

function manyMoves({ items = [], ...single }: schemas.MoveBody): Move[] {
  const [field] = Object.keys(single);
  if (field !== undefined) {
    throw kernelError(
      "VALIDATION_FAILED",
      {},
      { reason: `The body has both \`items\` and \`${field}\`; put it into each item` },
    );
  }
  return refuseRepeated(items as Move[]);
}

/** A statement moves a repeated shard once, so both entries would seem to have succeeded. */
function refuseRepeated<Cell extends { filename: string; shard: number }>(items: Cell[]): Cell[] {
  const seen = new Set<string>();
  for (const item of items) {
    if (seen.has(identity(item))) {
      const reason = `The field \`items\` names ${item.filename}, shard ${item.shard} twice`;
      throw invalid(reason);
    }
    seen.add(identity(item));
  }
  return items;
}

function batchItem(stage: QueueStage, { filename, shard }: Move, outcome: Moved | ApiError) {
  if (!(outcome instanceof ApiError)) return { filename, shard, stage, status: outcome.status, ok: true };
  const { code, message: error, details } = outcome;
  return {
    filename,
    shard,
    stage,
    ok: false,
    code,
    error,
    ...(typeof details["status"] === "string" ? { status: details["status"] } : {}),
  };
}

/** Splits the items into those still held and those lost; if all are lost, answers LEASE_LOST. */
function heldReply(stage: QueueStage, asked: readonly Move[], held: { filename: string; shard: number }[]) {
  const still = new Set(held.map(identity));
  const lost = asked.filter((item) => !still.has(identity(item)));
  const [first] = lost;
  if (first && held.length === 0) {
    const { filename, shard } = first;
    throw trackingError(
      "LEASE_LOST",
      { stage, filename, shard },
      { because: "it is not leased under this fence. Drop it and claim again" },
    );
  }
  return { stage, items: held, lost: lost.map(({ filename, shard }) => ({ filename, shard })) };
}

/** Aborts when the caller closes the connection before it has its answer. */
function disconnectSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  if (reply.raw.destroyed) controller.abort(); // Closed while its key was checked.
  reply.raw.on("close", () => {
    if (!reply.raw.writableFinished) controller.abort();
  });
  return controller.signal;
}
