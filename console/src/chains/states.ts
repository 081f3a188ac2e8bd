/** The states of runs and nodes as the console shows them. */
import type { IconName } from "../parts/controls/icons.tsx";
import type { State } from "../parts/states/state.ts";
import type { NodeStatus, RunStatus } from "./api.ts";

export const RUN_STATES: Readonly<Record<RunStatus, State>> = {
  PENDING: "waiting",
  RUNNING: "running",
  SUCCESS: "success",
  FAILED: "failed",
  STOPPING: "running",
  STOPPED: "stopped",
};
export const NODE_STATES: Readonly<Record<NodeStatus, State>> = {
  PENDING: "waiting",
  RUNNING: "running",
  SUCCESS: "success",
  FAILED: "failed",
  RETRYING: "waiting",
  SKIPPED: "skipped",
  STOPPED: "stopped",
};

/** Of an attempt that another one has followed; one whose worker was lost has failed. */
export function attemptState(status: string): State {
  if (status === "SUCCESS") return "success";
  return status === "STOPPED" ? "stopped" : "failed";
}

const ICONS: Readonly<Record<string, IconName>> = {
  http: "link",
  sql: "tracking",
  shell: "play",
  chain: "chains",
  map: "arrivals",
  sleep: "clock",
  noop: "minus",
  arrive: "harvest",
  model: "overview",
};

export function iconOf(type: string): IconName {
  return ICONS[type] ?? "admin";
}

/** How long something has taken so far, or took. */
export function tookMs({ startedAt, endedAt }: { startedAt: string | null; endedAt: string | null }, now: number) {
  if (startedAt === null) return undefined;
  return (endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt);
}
