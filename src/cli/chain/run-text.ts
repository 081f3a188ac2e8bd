/** Runs and nodes as text: durations, attempts, errors on one line, counts. */

import { MINUTE_MS, SECOND_MS } from "../../kernel/time/units.ts";
import { printable } from "../common/output.ts";
import type { NodeStatus, Run, RunNode, RunStatus } from "./api.ts";

/** `it failed with:`, `It ended with exit code 7. Last lines of stderr:` */
const INTRODUCTION = /(\.? Last lines\b[^:]*)?:$/;
/** The error of a node whose worker was lost, which does not count as an attempt. */
const LOST_WORKER = /^(its worker was (lost|shut down)|\d+ workers in a row were lost)$/;

/** `0:41`, `12:05`, `1:02:03`. */
export function clockTime(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / SECOND_MS));
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const pad = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(seconds % 60)}` : `${minutes}:${pad(seconds % 60)}`;
}

/** As `clockTime`, and finer below a minute: `340ms`, `12.3s`. */
export function duration(ms: number): string {
  if (ms >= MINUTE_MS) return clockTime(ms);
  // The server's clock may be ahead.
  return ms < SECOND_MS ? `${Math.max(0, Math.round(ms))}ms` : `${(Math.floor(ms / 100) / 10).toFixed(1)}s`;
}

/** The duration so far, or in total. Empty before the start, and between attempts if the last one's end is unknown. */
export function durationOf(
  { status, startedAt, endedAt }: Pick<Run | RunNode, "status" | "startedAt" | "endedAt">,
  now: number,
): string {
  if (startedAt === null || status === "PENDING" || (endedAt === null && !isInProgress(status))) return "";
  return duration((endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt));
}

/** Whether it has started and not ended. */
export function isInProgress(status: RunStatus | NodeStatus): boolean {
  return status === "RUNNING" || status === "STOPPING";
}

/** A note about a node in addition to its state and duration. */
export function nodeNote(node: RunNode, now: number): string {
  const error = inOneLine(node.lastError);
  const lost = LOST_WORKER.test(error) ? `attempt ${node.attempt} (${error})` : undefined;
  switch (node.status) {
    case "RETRYING":
      return lost ?? withReason(`retry ${ofAttempts(node)}${dueIn(node.dueAt, now)}`, error);
    case "FAILED":
      return lost ?? withReason(node.attempt > 1 ? `attempt ${ofAttempts(node)}` : "", error);
    case "RUNNING":
      return joined([
        lost ?? (node.attempt > 1 ? `attempt ${ofAttempts(node)}` : ""),
        node.progress === null ? "" : `${Math.floor(node.progress * 100)}%`,
        inOneLine(node.progressNote),
        node.childRunId === null ? "" : `run ${printable(node.childRunId)}`,
      ]);
    case "PENDING":
      return node.waitingFor === null ? "" : `waits for ${inOneLine(node.waitingFor)}`;
    case "SKIPPED":
      return error;
    case "SUCCESS":
    case "STOPPED":
      return "";
  }
}

/** The first line that is not blank. If it only introduces the rest, followed by the last line, which has the error. */
export function inOneLine(text: string | null): string {
  const lines = (text ?? "")
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const [first = ""] = lines;
  const [introduction] = INTRODUCTION.exec(first) ?? [];
  if (introduction === undefined || lines.length === 1) return printable(first);
  return printable(`${first.slice(0, -introduction.length)}: ${lines.at(-1)}`);
}

export function hasEnded(status: NodeStatus | undefined): boolean {
  return status === "SUCCESS" || status === "FAILED" || status === "SKIPPED" || status === "STOPPED";
}

/** `12 success, 1 failed`. */
export function countsInWords(counts: ReadonlyMap<NodeStatus, number>): string {
  const order: NodeStatus[] = ["SUCCESS", "RUNNING", "RETRYING", "FAILED", "SKIPPED", "STOPPED", "PENDING"];
  return joined(
    order.filter((status) => counts.has(status)).map((status) => `${counts.get(status)} ${status.toLowerCase()}`),
  );
}

export function countByStatus(nodes: Iterable<RunNode>): Map<NodeStatus, number> {
  const counts = new Map<NodeStatus, number>();
  for (const { status } of nodes) counts.set(status, (counts.get(status) ?? 0) + 1);
  return counts;
}

/** `2/3`. A manual retry keeps counting, beyond `maxAttempts`. */
function ofAttempts({ attempt, maxAttempts }: RunNode): string {
  return attempt > maxAttempts ? String(attempt) : `${attempt}/${maxAttempts}`;
}

function dueIn(dueAt: string | null, now: number): string {
  const leftMs = dueAt === null ? 0 : Date.parse(dueAt) - now;
  return leftMs > 0 ? ` in ${clockTime(leftMs)}` : "";
}

function withReason(what: string, reason: string): string {
  return [what, reason].filter((part) => part !== "").join(": ");
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(", ");
}
