/** The announcement of a table with the paths, fields and answers of the KPI library, word for word. */
import type { IncomingMessage } from "node:http";
import type { Db } from "../kernel/data/db.ts";
import { invalid } from "../kernel/errors.ts";
import { errors } from "../kernel/http/schemas.ts";
import type { Http } from "../kernel/http/server.ts";
import { isOpTime } from "../kernel/time/op-time.ts";
import type { Announced } from "./announce.ts";
import type { Arrivals } from "./arrivals.ts";
import type { Considered } from "./runs/consider.ts";
import * as schemas from "./schemas.ts";
import { type ArrivalsSettings, patternOf } from "./settings.ts";
import type { TaskRow } from "./store/tasks.ts";
import { createArrivalHints } from "./unknown-names.ts";

const NO_MODEL_DEPENDS = "无模型依赖此表";
const NO_OP_TIME_FITS = "The arrival is recorded, but no model that depends on this table has an opTime of this form.";
const RUNNING_ALREADY = "任务正在执行中";

export interface OpenRoutesDeps {
  db: Db;
  arrivals: Arrivals;
  settings: ArrivalsSettings;
}

export function openRoutes(http: Http, { db, arrivals, settings }: OpenRoutesDeps): void {
  const hints = createArrivalHints(db);
  const pattern = patternOf(`^(?:${settings.opTimePattern})$`, "arrivals.opTimePattern");

  http.post(
    "/srcTableComplete",
    {
      config: { scope: "kpi:write" },
      schema: {
        tags: ["arrivals"],
        summary: "Announce that a table has arrived for an opTime; models whose tables are now complete run",
        description:
          "Waits for the models that it triggers, 30 s by default, and then answers RUNNING for those that have not ended. " +
          "`Prefer: respond-async` does not wait. `Prefer: handling=strict` refuses an opTime that fits none of the models " +
          "that depend on the table, instead of recording it. With an Idempotency-Key, repeats of the same request are one arrival.",
        headers: schemas.ArrivalHeaders,
        body: schemas.ArrivalBody,
        response: { 200: schemas.ArrivalReply, ...errors(400) },
      },
    },
    async ({ body: { srcTableName: table, opTime }, headers, raw, signal, caller }) => {
      if (!isOpTime(opTime) || !pattern.test(opTime)) {
        const reason = `The opTime \`${opTime.slice(0, 64)}\` does not have the form that is accepted here: ${settings.opTimePattern}`;
        throw invalid(reason);
      }
      if (prefers(raw, "handling=strict")) await refuseUnfit(arrivals.tableName(table), opTime);
      const idempotencyKey = headers["idempotency-key"] ?? null;
      const announced = await arrivals.announce({ table, opTime, idempotencyKey, by: `key ${caller.name}` });
      const waitMs = prefersAsync(raw) ? 0 : settings.waitSeconds * 1000;
      const reply = replyTo(announced, await runsOf(announced, waitMs, signal));
      const hint = await hintFor(announced, arrivals.tableName(table), opTime);
      return hint === undefined ? reply : { ...reply, hint };
    },
  );

  async function hintFor(announced: Announced, table: string, opTime: string): Promise<string | undefined> {
    if (!announced.isUsed) return hints.ofTable(table);
    return announced.considered.length === 0 ? hints.ofOpTime(table, opTime) : undefined;
  }

  async function refuseUnfit(table: string, opTime: string): Promise<void> {
    const hint = await hints.ofOpTime(table, opTime);
    if (hint !== undefined) throw invalid(`${hint} Without \`Prefer: handling=strict\` it is recorded all the same`);
  }

  /** Waits for the runs that an announcement has triggered; a run that has not ended in time is undefined. */
  async function runsOf({ considered }: Announced, waitMs: number, disconnected: AbortSignal) {
    const triggered = considered.filter(({ verdict }) => verdict.kind === "ready");
    if (waitMs === 0 || triggered.length === 0) return new Map<Considered, TaskRow | undefined>();
    const signal = AbortSignal.any([disconnected, AbortSignal.timeout(waitMs), arrivals.runWaiters.closing]);
    const ended = await Promise.all(triggered.map((one) => arrivals.runWaiters.ended(one, signal)));
    return new Map(triggered.map((one, index) => [one, ended[index]]));
  }
}

export function prefersAsync(request: IncomingMessage): boolean {
  return prefers(request, "respond-async");
}

/** Other preferences are ignored, as RFC 7240 allows. */
function prefers({ headers: { prefer } }: IncomingMessage, preference: string): boolean {
  return String(prefer ?? "")
    .split(",")
    .some((part) => part.trim().toLowerCase() === preference);
}

function replyTo({ isUsed, considered, unpublished }: Announced, runs: ReadonlyMap<Considered, TaskRow | undefined>) {
  const reply: schemas.ArrivalReply = {
    status: "SUCCESS",
    triggeredModels: [],
    waitingModels: [],
    skippedModels: [...unpublished],
  };
  if (!isUsed) return { ...reply, status: "IGNORED" as const, message: NO_MODEL_DEPENDS };
  if (considered.length === 0 && unpublished.length === 0) return { ...reply, message: NO_OP_TIME_FITS };
  for (const one of considered) {
    const key = { modelId: one.model_id, opTime: one.op_time };
    switch (one.verdict.kind) {
      case "ready":
        reply.triggeredModels.push({ ...key, generation: one.generation, ...endOf(runs.get(one)) });
        break;
      case "running":
        reply.triggeredModels.push({
          ...key,
          status: "SKIPPED",
          message: RUNNING_ALREADY,
          followUp: one.verdict.followUp,
        });
        break;
      case "waiting":
      case "quiet":
        reply.waitingModels.push(one.model_id);
        break;
      case "asking":
      case "ignored":
      case "nothing new":
        reply.skippedModels.push(one.model_id);
        break;
    }
  }
  // A model that waits for several opTimes is named once.
  const unique = (ids: string[]) => [...new Set(ids)];
  return { ...reply, waitingModels: unique(reply.waitingModels), skippedModels: unique(reply.skippedModels) };
}

/** The fields of an answer that describe how a run ended. */
export function endOf(task: TaskRow | undefined): Omit<schemas.Triggered, "modelId" | "opTime"> {
  if (!task || task.status === "RUNNING") return { status: "RUNNING" };
  const { status, generation, compute_count, storage_count, message, warnings } = task;
  return {
    status,
    generation,
    ...(compute_count === null ? {} : { computeCount: compute_count }),
    ...(storage_count === null ? {} : { storageCount: storage_count }),
    ...(message === null ? {} : { message }),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}
