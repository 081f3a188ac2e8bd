/**
 * The settings, errors, metrics, scopes, hints and tags of chains. It imports no package, because the command line reads it too.
 */
import type { Catalogue } from "../kernel/catalogue.ts";
import { trueOrFalse } from "../kernel/config/kinds.ts";
import { errorsOf } from "../kernel/errors.ts";
import type { Hints } from "../kernel/hints/hints.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";

export const CATALOGUE = {
  name: "chains",
  settings: {
    allowShell: {
      env: "MILLRACE_ALLOW_SHELL",
      flag: "allow-shell",
      kind: trueOrFalse,
      default: "false",
      description: "Whether chain nodes of type `shell` may run commands on the workers.",
    },
  },
  // An unknown chain, run or node is 400, as the callers of these endpoints expect.
  errors: {
    CHAIN_NOT_FOUND: { status: 400, sentence: "There is no chain {chainId}." },
    CHAIN_NAME_TAKEN: {
      status: 400,
      sentence: "There is already a chain named `{name}`. Choose another name or update it.",
    },
    DAG_INVALID: { status: 400, sentence: "{reason}." },
    CHAIN_IN_USE: { status: 409, sentence: "Chain `{name}` cannot be deleted: {because}. Disable it instead." },
    CHAIN_DISABLED: { status: 409, sentence: "The chain is disabled: enable `{name}` first." },
    CHAIN_FULL: {
      status: 409,
      sentence: "Chain `{name}` has {active} of at most {max} active runs. Wait until one has ended, or stop one.",
    },
    VERSION_CONFLICT: {
      status: 409,
      sentence:
        "Chain {chainId} is at version {version}, but the update was made from version {yours}. Read it again and repeat the change.",
    },
    CHAIN_VERSION_NOT_FOUND: { status: 400, sentence: "Chain {chainId} has no version {version}." },
    RUN_NOT_FOUND: { status: 400, sentence: "There is no run {runId}." },
    NODE_NOT_FOUND: { status: 400, sentence: "Run {runId} has no node `{nodeId}`.{hint}" },
    RUN_WRONG_STATE: { status: 409, sentence: "Cannot {verb} run {runId}: {because}." },
    NODE_WRONG_STATE: { status: 409, sentence: "Cannot {verb} node `{nodeId}` of run {runId}: {because}." },
    RUN_CHANGED: {
      status: 409,
      sentence:
        "Run {runId} has changed since the preview, and this would now do something else. Look at a new preview.",
    },
    OP_TIME_NEEDED: {
      status: 400,
      sentence: "Chain `{name}` waits for tables ({tables}), so a run of it needs an `opTime`.",
    },
    OP_TIME_RANGE: { status: 400, sentence: "{reason}." },
    IDEMPOTENCY_CONFLICT: {
      status: 409,
      sentence: "The Idempotency-Key `{key}` was used for another start of this chain (run {runId}). Use a new key.",
    },
    SCHEDULE_NOT_FOUND: { status: 400, sentence: "Chain {chainId} has no schedule {scheduleId}." },
    SCHEDULE_NAME_TAKEN: { status: 400, sentence: "The chain already has a schedule named `{name}`." },
    SCHEDULE_INVALID: { status: 400, sentence: "{reason}." },
    POOL_NOT_FOUND: { status: 400, sentence: "There is no pool `{name}`." },
    POOL_IN_USE: {
      status: 409,
      sentence: "Pool `{name}` is in use: {because}.",
    },
  },
  metrics: {
    millrace_chains_runs_total: {
      kind: "counter",
      help: "Runs of chains that started, succeeded, failed or were stopped.",
      labels: ["outcome"],
    },
    millrace_chains_node_seconds: {
      kind: "histogram",
      help: "Time from the claim of a node to its end, with the run that it waits for, by type and outcome.",
      labels: ["type", "outcome"],
    },
    millrace_chains_nodes_in_flight: { kind: "gauge", help: "Nodes that this process is running.", labels: [] },
  },
  scopes: { "chain:read": {}, "chain:write": {}, "run:read": {}, "run:write": {}, "run:control": {} },
  hints: {
    chain: { scope: "chain:read", id: "`chainId`", help: "It was created, changed, enabled or disabled." },
    run: {
      scope: "run:read",
      id: "`runId`",
      help: "It or one of its nodes was started, moved on or reported progress; `*` also when old runs were deleted.",
    },
    schedule: {
      scope: "chain:read",
      id: "`scheduleId`",
      help: "It was created, changed, paused or deleted, or it fired.",
    },
    pool: { scope: "chain:read", id: "`name`", help: "It was created, resized or deleted. Its use changes with runs." },
  },
  tags: {
    chains: "Definitions of chains, their schedules and pools",
    runs: "Runs of chains and their nodes",
  },
} as const satisfies Catalogue;

export const chainsError = errorsOf(CATALOGUE.errors);
export type ChainsHints = Hints<typeof CATALOGUE.hints>;
export type ChainsMetrics = Metrics<typeof CATALOGUE.metrics>;
