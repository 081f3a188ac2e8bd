/** `millrace harvest sources`, `tasks` and `schedules`: what there is, what is queued, and what will be. */
import { OperatorError } from "../../kernel/errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { inOneLine } from "../chain/run-text.ts";
import { type Client, pathTo } from "../common/client.ts";
import { clientCommand, serverCommand } from "../common/client-command.ts";
import type { Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, table, toSeconds } from "../common/output.ts";
import { HARVEST, type Window, withPlanHint } from "./api.ts";
import { LIST_FLAGS, type Listed, listedText, listQuery, ofSource } from "./listed.ts";
import { shownWindow } from "./plan-text.ts";

interface Task {
  taskId: number;
  planId: string;
  sliceId: number;
  /** `source/endpoint/operation` */
  partition: string;
  window: Window;
  status: string;
  scheduledAt: string | null;
  waitReason: string | null;
  attempts: number;
  error: string | null;
}

interface Schedule {
  scheduleId: number;
  source: string;
  name: string;
  endpoint: string;
  operation: string;
  cron: string;
  timeZone: string;
  paused: boolean;
  nextAt: string | null;
  /** Why it does not fire although it is on; an older server does not answer it. */
  held?: string | null;
  lastAt?: string | null;
  /** What the last fire led to: a plan with its status now, or why there is none. */
  last?: { planId?: string; status?: string; nothing?: string; refused?: string } | null;
}

interface Source {
  source: string;
  name: string;
  baseUrl: string;
  revision: number;
  endpoints: number;
  schedules: number;
  updatedAt: string;
}

const sources = clientCommand<{ items: Source[]; total: number }>({
  summary: "List sources",
  args: "[TEXT]",
  flags: [],
  details: "With TEXT, those that have it in their name. The first 100 are listed.",
  examples: ["millrace harvest sources", "millrace harvest sources crossref"],
  request: (given) => ({
    method: "GET",
    path: `${HARVEST}/registry/sources`,
    query: { q: given.maybeText("TEXT"), size: SOURCES_MAX },
  }),
  show: sourcesText,
});

const SOURCES_MAX = 100;
export const OF_SOURCE: Flag = { usage: "--source <name>", description: "Of this source only." };

const tasks = serverCommand<Listed<Task>>({
  summary: "List tasks, the newest first, with what they wait for",
  args: "",
  flags: [
    { usage: "--plan <plan>", description: "Of this plan only." },
    OF_SOURCE,
    {
      usage: "--status <status>",
      description: "Tasks that are QUEUED, EXECUTING, SUCCEEDED, FAILED, PARTIAL or CANCELLED.",
    },
    ...LIST_FLAGS,
  ],
  examples: ["millrace harvest tasks --status queued"],
  execute: listTasks,
  show: (reply) => tasksText(reply),
});

const schedules = serverCommand<Listed<Schedule> | Schedule>({
  summary: "List schedules; pause ID or resume ID changes one",
  details: `NEXT is when a schedule makes a plan again, LAST when it did, RESULT the status of that plan, or why there is none.
A schedule whose source, endpoint or operation is paused is held: it fires once when that is resumed.

Schedules are defined in the file of their source. Times that pass while one is paused make no plan; the next plan after
resume takes what is new since the watermark.`,
  args: "[ACTION] [ID]",
  flags: [OF_SOURCE],
  examples: ["millrace harvest schedules", "millrace harvest schedules pause 3", "millrace harvest schedules resume 3"],
  execute: schedulesReply,
  show: (reply) => ("items" in reply ? schedulesText(reply) : scheduleLine(reply)),
});

export const lists = { sources, tasks, schedules };

async function listTasks(client: Client, given: Given): Promise<Listed<Task>> {
  const plan = given.maybeText("--plan");
  const source = given.maybeText("--source");
  const query = { status: given.maybeText("--status")?.toUpperCase(), ...listQuery(given) };
  if (plan === undefined) {
    const path = `${HARVEST}/tasks`;
    return ofSource(
      client,
      source,
      await client.call<Listed<Task>>({ method: "GET", path, query: { ...query, source } }),
    );
  }
  if (source !== undefined) throw new OperatorError("Give either --plan or --source.", EXIT.usage);
  const path = pathTo`api/v1/harvest/plans/${plan}/tasks`;
  return withPlanHint(plan, () => client.call<Listed<Task>>({ method: "GET", path, query }));
}

async function schedulesReply(client: Client, given: Given): Promise<Listed<Schedule> | Schedule> {
  const action = given.maybeText("ACTION") ?? "list";
  const id = given.maybeText("ID");
  switch (action) {
    case "list": {
      if (id !== undefined) throw new OperatorError(`\`${id}\` is one argument too many.`, EXIT.usage);
      const source = given.maybeText("--source");
      const path = `${HARVEST}/schedules`;
      return ofSource(client, source, await client.call<Listed<Schedule>>({ method: "GET", path, query: { source } }));
    }
    case "pause":
    case "resume":
      if (id === undefined) {
        throw new OperatorError(`The id of the schedule is missing. See \`millrace harvest schedules\`.`, EXIT.usage);
      }
      return client.call<Schedule>({ method: "POST", path: `${pathTo`api/v1/harvest/schedules/${id}`}:${action}` });
    default: {
      const hint = didYouMean(action, ["list", "pause", "resume"]) || " Actions: list, pause, resume.";
      throw new OperatorError(`There is no action \`${action}\`.${hint}`, EXIT.usage);
    }
  }
}

export function sourcesText({ items, total }: { items: Source[]; total: number }): string {
  const next = total > items.length ? [`and ${total - items.length} more`] : [];
  const rows = (listed: Source[]) =>
    table(
      ["SOURCE", "NAME", "ADDRESS", "REVISION", "ENDPOINTS", "SCHEDULES", "UPDATED"],
      listed.map(({ source, name, baseUrl, revision, endpoints, schedules: count, updatedAt }) => [
        source,
        name,
        baseUrl,
        revision,
        endpoints,
        count,
        toSeconds(updatedAt),
      ]),
    );
  return [listedText({ items }, "source", rows), ...next].join("\n");
}

export function tasksText(list: Listed<Task>): string {
  return listedText(list, "task", (items) =>
    table(
      ["TASK", "PLAN", "SLICE", "PARTITION", "WINDOW", "STATUS", "ATTEMPTS", "DUE", "REASON"],
      items.map((task) => [
        task.taskId,
        task.planId,
        task.sliceId,
        task.partition,
        shownWindow(task.window),
        task.status,
        task.attempts,
        task.status === "QUEUED" ? toSeconds(task.scheduledAt) : undefined,
        inOneLine((task.status === "QUEUED" ? task.waitReason : null) ?? task.error),
      ]),
    ),
  );
}

export function schedulesText(list: Listed<Schedule>): string {
  const held = new Set(list.items.flatMap(({ held: reason }) => (reason ? [`held: ${inOneLine(reason)}`] : [])));
  const all = listedText(list, "schedule", (items) =>
    table(
      ["ID", "SOURCE", "NAME", "ENDPOINT", "OPERATION", "CRON", "ZONE", "NEXT", "LAST", "RESULT"],
      items.map(({ lastAt, last, ...schedule }) => [
        schedule.scheduleId,
        schedule.source,
        schedule.name,
        schedule.endpoint,
        schedule.operation,
        schedule.cron,
        schedule.timeZone,
        schedule.paused ? "paused" : schedule.held ? "held" : toSeconds(schedule.nextAt),
        toSeconds(lastAt),
        last ? resultText(last) : undefined,
      ]),
    ),
  );
  return [all, ...held].join("\n");
}

function resultText({ planId, status, nothing, refused }: NonNullable<Schedule["last"]>): string {
  if (planId !== undefined) return inOneLine(`${status ?? "made"} plan ${planId}`);
  return inOneLine(refused === undefined ? `no plan: ${nothing}` : `refused: ${refused}`);
}

function scheduleLine({ source, name, paused, nextAt }: Schedule): string {
  const next = paused ? "paused" : `on, next at ${toSeconds(nextAt)}`;
  return `${printable(`${source} ${name}`)}: ${next}.`;
}
