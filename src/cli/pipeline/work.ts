/**
 * `millrace pipeline work`: a worker that runs a command of the user for each item. It claims items, runs the command, keeps the
 * leases meanwhile, and marks the items done or failed.
 */
import { OperatorError } from "../../kernel/errors.ts";
import { type RetryPolicy, withRetry } from "../../kernel/work/retry.ts";
import { type Client, isTransient, pathTo } from "../common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor } from "../common/client-command.ts";
import type { Command, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable } from "../common/output.ts";
import { stopSignals } from "../common/stop-signals.ts";
import { type HeldItem, type HeldItems, holdItems, type Item } from "./held-items.ts";
import { type RunningCommand, runCommand } from "./run-command.ts";

/** How long one claim waits for work: an idle worker sends a request this often. */
const WAIT_SECONDS = 30;
const LEASE_SECONDS = 60;
const RETRY: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseMs: 500,
  factor: 2,
  capMs: 15_000,
  jitter: 0.5,
};

export const work: Command = {
  summary: "Claim items and run a command for each",
  details: `Waits for work, claims it, and runs the command with FILENAME, SHARD, STAGE and FENCE in its environment.
Exit code 0 marks the item done; any other marks it failed, with the last line of the command's error
output as the reason. The lease is kept while the command runs; if it is lost nevertheless, the command is
ended, because another worker may have the item. One item runs at a time: start several workers for more.

Ctrl-C or SIGTERM lets the running command finish, releases the other claimed items and exits with 0; a
second signal ends the command too. While the server cannot be reached, the worker waits. With --once it
stops when the queue is empty, and exits with 1 if any command failed.`,
  args: "STAGE",
  takesCommandLine: true,
  flags: [
    {
      usage: "--worker <name>",
      description: "The name of this worker, shown with the items that it holds.",
      required: true,
    },
    { usage: "--limit <number>", description: "Items to claim at a time (default 1)." },
    {
      usage: "--lease <seconds>",
      description: `How long the lease of an item lasts without a heartbeat (default ${LEASE_SECONDS}).`,
    },
    { usage: "--once", description: "Stop when the queue is empty, or when the server cannot be reached." },
    { usage: "--json", description: "Report each item as a line of JSON on standard error." },
    ...CLIENT_FLAGS,
  ],
  environment: CLIENT_ENVIRONMENT,
  examples: [
    "millrace pipeline work shard-worker --worker $(hostname) -- ./load-shard.sh",
    `millrace pipeline work mysql-sender --worker w1 --once -- sh -c 'mysql db < "/data/$FILENAME.$SHARD.sql"'`,
  ],
  run: (given) => runWorker(given),
};

type Outcome = "done" | "failed" | "lost";

async function runWorker(given: Given): Promise<number> {
  const stage = given.text("STAGE");
  const worker = given.text("--worker");
  const limit = given.maybeNumber("--limit");
  const leaseSeconds = given.maybeNumber("--lease") ?? LEASE_SECONDS;
  const once = given.isOn("--once");
  const client = clientFor(given);
  const report = given.isOn("--json") ? reportAsJson : reportAsText;

  let running: RunningCommand | undefined;
  const stopping = stopSignals((signal) => {
    printLine(`${signal} again: stopping at once.`);
    running?.kill();
  });
  stopping.addEventListener("abort", () => {
    if (running) printLine("Stopping after the running command. Press Ctrl-C again to end it too.");
  });

  let failures = 0;
  while (!stopping.aborted) {
    const claimed = await claim();
    if (claimed.length === 0) {
      if (once) break;
      continue;
    }
    const held = holdItems(claimed, { client, stage, leaseSeconds });
    try {
      for (const item of held.items) if (!stopping.aborted) await workOn(item, held);
    } finally {
      await held.release();
    }
  }
  return once && failures > 0 ? EXIT.failed : EXIT.ok;

  async function claim(): Promise<Item[]> {
    try {
      const { items } = await retryWhileUnavailable(
        () =>
          client.call<{ items: Item[] }>({
            method: "POST",
            path: pathTo`api/v1/pipeline/queues/${stage}/claim`,
            body: { worker, limit, lease_seconds: leaseSeconds, wait_seconds: once ? 0 : WAIT_SECONDS },
            waitSeconds: WAIT_SECONDS,
            // On a disconnect, the server releases what it has claimed for us.
            signal: stopping,
          }),
        { signal: stopping, retry: !once },
      );
      return items;
    } catch (error) {
      if (stopping.aborted) return [];
      throw error;
    }
  }

  async function workOn(item: HeldItem, held: HeldItems): Promise<void> {
    const startedAt = performance.now();
    const reportEnd = (outcome: Outcome, reason?: string) =>
      report(item, outcome, Math.round(performance.now() - startedAt) / 1000, reason);
    if (item.lost.aborted) return reportEnd("lost");
    const { filename, shard, fence } = item;
    running = runCommand(given.commandLine, {
      ...process.env,
      FILENAME: filename,
      SHARD: String(shard),
      STAGE: stage,
      FENCE: fence,
    });
    item.lost.addEventListener("abort", running.terminate);
    const failure = await running.failure.catch((error: NodeJS.ErrnoException) => {
      // Not a failure of the item: a misspelt command would fail every item of the queue.
      throw new OperatorError(`Cannot run \`${given.commandLine[0]}\` (${error.code ?? error.message}).`, EXIT.usage);
    });
    running = undefined;
    if (item.lost.aborted) return reportEnd("lost");
    try {
      await finish(client, stage, item, failure);
    } catch (error) {
      if (!item.lost.aborted && !isWrongState(error)) throw error;
      return reportEnd("lost", error instanceof OperatorError ? error.message : undefined);
    } finally {
      held.forget(item);
    }
    if (failure !== undefined) failures += 1;
    reportEnd(failure === undefined ? "done" : "failed", failure);
  }
}

/** Repeated while the server is away and the item is ours: finishing twice under one fence is finishing once. */
async function finish(client: Client, stage: string, item: HeldItem, failure: string | undefined): Promise<void> {
  const { filename, shard, fence, lost } = item;
  const transition = failure === undefined ? "done" : "fail";
  await retryWhileUnavailable(
    () =>
      client.call({
        method: "POST",
        path: pathTo`api/v1/pipeline/stages/${stage}/${transition}`,
        body: { filename, shard, fence, error: failure },
      }),
    { signal: lost, retry: true },
  );
}

/** Retries while the server cannot be reached or is busy, until the signal aborts. */
async function retryWhileUnavailable<T>(
  attempt: () => Promise<T>,
  { signal, retry }: { signal: AbortSignal; retry: boolean },
): Promise<T> {
  let hasReported = false;
  return withRetry(attempt, {
    policy: RETRY,
    signal,
    retryOn(error) {
      if (!retry || !isTransient(error)) return false;
      if (!hasReported) printLine(`${(error as OperatorError).message} Trying again.`);
      hasReported = true;
      return true;
    },
  });
}

function isWrongState(error: unknown): boolean {
  return error instanceof OperatorError && error.exitCode === EXIT.wrongState;
}

/** Standard output belongs to the command. */
function printLine(line: string): void {
  process.stderr.write(`${printable(line)}\n`);
}

function reportAsText({ filename, shard }: Item, outcome: Outcome, seconds: number, reason?: string): void {
  printLine(`${outcome} ${filename}, shard ${shard} (${seconds} s)${reason === undefined ? "" : `: ${reason}`}`);
}

function reportAsJson({ filename, shard, fence }: Item, outcome: Outcome, seconds: number, reason?: string): void {
  process.stderr.write(`${JSON.stringify({ filename, shard, fence, outcome, seconds, reason })}\n`);
}
