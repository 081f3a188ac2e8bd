/** The lists of `millrace kpi`: models, values, runs, arrivals. */

import { OperatorError } from "../../kernel/errors.ts";
import { listed } from "../../kernel/text/sentences.ts";
import { durationOf, inOneLine } from "../chain/run-text.ts";
import { clientCommand } from "../common/client-command.ts";
import type { Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { table, toSeconds } from "../common/output.ts";
import { listing, PAGE_FLAGS, type Page, pageOf } from "../common/paging.ts";
import { type Model, remarksOf, type Task } from "./api.ts";

const OP_TIME: Flag = { usage: "--op-time <time>", description: "Only this opTime." };

const models = clientCommand<Page<Model>>({
  summary: "List models",
  args: "",
  flags: [
    { usage: "--q <text>", description: "Models whose ids or names contain this." },
    { usage: "--state <state>", description: "Only published or unpublished ones." },
    ...PAGE_FLAGS,
  ],
  examples: ["millrace kpi models", "millrace kpi models --state unpublished"],
  request: (given) => ({
    method: "GET",
    path: "api/v1/kpi/models",
    query: { q: given.maybeText("--q"), state: stateOf(given), ...pageOf(given) },
  }),
  show: (page) =>
    listing(page, "model", () =>
      table(
        ["MODEL", "NAME", "STATE", "GRAIN", "RUNS", "TABLES", "KPIS", "PRODUCES", "RERUN"],
        page.items.map(({ modelId, name, state, grain, engine, chain, dependencies, kpis, produces, rerun }) => [
          modelId,
          name,
          state === 1 ? "published" : "unpublished",
          grain ?? undefined,
          chain === null ? `SQL on ${engine}` : `chain ${chain}`,
          listed([...new Set(dependencies.map((dependency) => dependency.table))], NAMES_SHOWN),
          listed(kpis, NAMES_SHOWN),
          produces ?? undefined,
          rerun,
        ]),
      ),
    ),
});

function stateOf(given: Given): number | undefined {
  const state = given.maybeText("--state");
  if (state === undefined) return undefined;
  if (state !== "published" && state !== "unpublished") {
    throw new OperatorError(`--state is \`${state}\`. Accepted: published or unpublished.`, EXIT.usage);
  }
  return state === "published" ? 1 : 0;
}

const NAMES_SHOWN = 3;

interface Value {
  kpiId: string;
  opTime: string;
  valueText: string;
  dimensions: Record<string, string | number | boolean | null>;
  modelId: string | null;
  generation: number;
  updatedAt: string;
}

const data = clientCommand<Page<Value>>({
  summary: "List values of indicators",
  args: "[KPI]",
  flags: [
    OP_TIME,
    { usage: "--from <time>", description: "From this opTime." },
    { usage: "--to <time>", description: "Up to this opTime." },
    { usage: "--dimensions <json>", description: "Only values with these dimensions: an object." },
    ...PAGE_FLAGS,
  ],
  examples: [
    "millrace kpi data KD1001 --op-time 20251219",
    `millrace kpi data KD1001 --from 20251201 --to 20251231 --dimensions '{"region":"EU"}'`,
  ],
  request: (given) => ({
    method: "GET",
    path: "api/v1/kpi/data",
    query: {
      kpiId: given.maybeText("KPI"),
      opTime: given.maybeText("--op-time"),
      from: given.maybeText("--from"),
      to: given.maybeText("--to"),
      dimensions: given.maybeText("--dimensions"),
      ...pageOf(given),
    },
  }),
  show: (page) =>
    listing(page, "value", () =>
      table(
        ["KPI", "OPTIME", "DIMENSIONS", "VALUE", "MODEL", "GENERATION", "UPDATED"],
        page.items.map(({ kpiId, opTime, dimensions, valueText, modelId, generation, updatedAt }) => [
          kpiId,
          opTime,
          Object.entries(dimensions)
            .map(([name, one]) => `${name}=${one}`)
            .join(" "),
          valueText,
          modelId ?? "computed",
          generation,
          toSeconds(updatedAt),
        ]),
      ),
    ),
});

const runs = clientCommand<Page<Task>>({
  summary: "List runs of models, newest first",
  args: "[MODEL]",
  flags: [OP_TIME, { usage: "--status <status>", description: "Only RUNNING, SUCCESS or FAILED." }, ...PAGE_FLAGS],
  examples: ["millrace kpi runs MODEL-01", "millrace kpi runs --status FAILED"],
  request: (given) => ({
    method: "GET",
    path: "api/v1/kpi/task-logs",
    query: {
      modelId: given.maybeText("MODEL"),
      opTime: given.maybeText("--op-time"),
      status: given.maybeText("--status")?.toUpperCase(),
      ...pageOf(given),
    },
  }),
  show: (page) => listing(page, "run", () => runTable(page.items)),
});

export function runTable(tasks: readonly Task[]): string {
  return table(
    [
      "RUN",
      "MODEL",
      "OPTIME",
      "GENERATION",
      "ATTEMPT",
      "STATUS",
      "STARTED",
      "DURATION",
      "TRIED AGAIN",
      "COMPUTED",
      "STORED",
      "BECAUSE OF",
      "MESSAGE",
    ],
    tasks.map((task) => [
      task.id,
      task.modelId,
      task.opTime,
      task.generation,
      tasks.some(({ attempt }) => attempt > 1) ? task.attempt : undefined,
      task.status,
      toSeconds(task.startTime),
      durationOf({ status: task.status, startedAt: task.startTime, endedAt: task.endTime }, Date.now()),
      toSeconds(task.retryAt),
      task.computeCount ?? undefined,
      task.storageCount ?? undefined,
      task.causedBy === null ? task.trigger : `${task.causedBy.table} ${task.causedBy.opTime}`,
      inOneLine(remarksOf(task)),
    ]),
  );
}

interface ArrivalListed {
  table: string;
  opTime: string;
  arrivalTime: string;
  firstTime: string;
  arrivals: number;
}

const arrivals = clientCommand<Page<ArrivalListed>>({
  summary: "List tables that have arrived, newest first",
  args: "[TABLE]",
  flags: [OP_TIME, ...PAGE_FLAGS],
  examples: ["millrace kpi arrivals DW_FACT_ORDER_D", "millrace kpi arrivals --op-time 20251219"],
  request: (given) => ({
    method: "GET",
    path: "api/v1/kpi/arrivals",
    query: { table: given.maybeText("TABLE"), opTime: given.maybeText("--op-time"), ...pageOf(given) },
  }),
  show: (page) =>
    listing(page, "arrival", () =>
      table(
        ["TABLE", "OPTIME", "ARRIVED", "TIMES", "FIRST"],
        page.items.map(({ table: name, opTime, arrivalTime, firstTime, arrivals: times }) => [
          name,
          opTime,
          toSeconds(arrivalTime),
          times,
          toSeconds(firstTime),
        ]),
      ),
    ),
});

export const lists = { models, data, runs, arrivals };
