/** `millrace lineage tasks`: the embeddings and summaries of a tenant, and their errors. */
import { inOneLine } from "../chain/run-text.ts";
import { serverCommand } from "../common/client-command.ts";
import { table, toSeconds } from "../common/output.ts";
import { listing, PAGE_FLAGS, type Page, pageOf } from "../common/paging.ts";
import { callTenant, TENANT_FLAG } from "./api.ts";

interface Task {
  id: string;
  type: string;
  resourceType: string;
  resourceId: string;
  modelFingerprint: string;
  status: string;
  retryCount: number;
  maxRetry: number;
  nextRunAt: string;
  lastError: string | null;
  updatedAt: string;
}

const ENDED = new Set(["SUCCEEDED", "CANCELED", "DEAD"]);

export const tasks = serverCommand<Page<Task>>({
  summary: "List the embeddings and summaries that a tenant's model computes",
  details: "The most recently due come first. A failed task is retried for some hours, then it is DEAD.",
  args: "",
  flags: [
    { usage: "--status <status>", description: "Only those with this status, such as FAILED or DEAD." },
    { usage: "--type <type>", description: "Only EMBEDDING or SQL_SUMMARY." },
    ...PAGE_FLAGS,
    TENANT_FLAG,
  ],
  examples: ["millrace lineage tasks --status DEAD", "millrace lineage tasks --tenant 7 --type EMBEDDING"],
  execute: async (client, given) =>
    callTenant<Page<Task>>(client, given, {
      method: "GET",
      path: "tasks",
      query: {
        status: given.maybeText("--status")?.toUpperCase(),
        type: given.maybeText("--type")?.toUpperCase(),
        ...pageOf(given),
      },
    }),
  show: (page) =>
    listing(page, "task", () =>
      table(
        ["TASK", "TYPE", "OF", "ASSET", "MODEL", "STATUS", "RETRIES", "DUE", "UPDATED", "REASON"],
        page.items.map((task) => [
          task.id,
          task.type,
          task.resourceType,
          task.resourceId,
          task.modelFingerprint,
          task.status,
          task.retryCount === 0 ? undefined : `${task.retryCount}/${task.maxRetry}`,
          ENDED.has(task.status) ? undefined : toSeconds(task.nextRunAt),
          toSeconds(task.updatedAt),
          inOneLine(task.lastError),
        ]),
      ),
    ),
});
