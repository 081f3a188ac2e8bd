/** The parts of the arrivals and KPI API that the commands use. */

export type TaskStatus = "RUNNING" | "SUCCESS" | "FAILED";

/** A model that was triggered by an arrival or by hand. */
export interface Triggered {
  modelId: string;
  opTime: string;
  status: TaskStatus | "SKIPPED";
  computeCount?: number;
  storageCount?: number;
  message?: string;
  /** Checks that failed and only warn. */
  warnings?: string[];
  generation?: number;
  followUp?: boolean;
}

export interface Arrival {
  status: "SUCCESS" | "IGNORED";
  /** Why nothing was triggered, if it is not obvious. */
  message?: string;
  /** What was probably meant, if no model uses the table or opTime. */
  hint?: string;
  triggeredModels: Triggered[];
  waitingModels: string[];
  skippedModels: string[];
}

export interface Dependency {
  table: string;
  optional: boolean;
  quietSeconds: number;
  deadline: string | null;
  grain: string | null;
  offset: number;
}

export interface Model {
  modelId: string;
  name: string;
  description: string | null;
  /** 1 is published. */
  state: number;
  engine: string | null;
  sql: string | null;
  chain: string | null;
  dependencies: Dependency[];
  kpis: string[];
  grain: string | null;
  timeZone: string;
  produces: string | null;
  rerun: string;
  timeoutSeconds: number;
  retry: object | null;
  expect: object | null;
  allowEmpty: boolean;
  version: number;
}

export interface Indicator {
  kpiId: string;
  type: "EXTENDED" | "COMPUTED";
  name: string;
  expression: string | null;
  dependsOn: string[];
}

/** The value of its secret is never returned, only its type and name. */
export interface Subscription {
  id: number;
  kpiId: string;
  callbackUrl: string;
  teamName: string;
  secretType: string | null;
  secretKey: string | null;
  retryNum: number;
  status: string;
  userId: string;
}

/** A run of a model. */
export interface Task {
  id: string;
  modelId: string;
  opTime: string;
  status: TaskStatus;
  startTime: string;
  endTime: string | null;
  message: string | null;
  computeCount: number | null;
  storageCount: number | null;
  warnings: string[];
  generation: number;
  attempt: number;
  /** When it is tried again, if it has failed and its next attempt has not begun. */
  retryAt: string | null;
  trigger: string;
  causedBy: { table: string; opTime: string } | null;
}

/** The message of a run and its warnings, for one line. */
export function remarksOf({ message, warnings = [] }: { message?: string | null; warnings?: readonly string[] }) {
  return [message ?? "", ...warnings.map((warning) => `Warning: ${warning}`)].filter((one) => one !== "").join(" ");
}
