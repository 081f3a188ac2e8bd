/**
 * Keeps the demo busy after the scenario, so that the console shows live changes: it loads and harvests the following days step by
 * step, then late records and orders of the newest day. The pause between steps grows, so a demo that runs for hours stays small.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../kernel/errors.ts";
import { newestOf, opTimeOf } from "./days.ts";
import { clicksFile, SIGN_OFF, visitsFile } from "./definitions.ts";
import { harvest } from "./harvest.ts";
import {
  announce,
  announceRegions,
  type Chains,
  printAttempts,
  runChain,
  type ScenarioContext,
  trackFiles,
} from "./scenario.ts";
import { SOURCE_NAMES } from "./sources.ts";

const PAUSE_MS_MIN = 4_000;
const PAUSE_MS_MAX = 60_000;
const PAUSE_GROWTH = 1.03;
/** The team that is down recovers after so many steps, about a minute and a half. */
const OUTAGE_STEPS = 15;
/** As many attempts as the node `fetch` has, so that the run fails. */
const ATTEMPTS = 3;

type Step = () => Promise<string>;

/** Runs until aborted. A failed step is printed, and the next one follows. */
export async function keepBusy(context: ScenarioContext, chains: Chains): Promise<void> {
  const { printLine, subscribers, signal } = context;
  let steps = 0;
  let pauseMs = PAUSE_MS_MIN;
  for (const step of stepsOf(context, chains)) {
    try {
      await sleep(pauseMs, undefined, { signal });
      printLine(await step());
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof OperatorError)) throw error;
      printLine(error.message);
    }
    steps += 1;
    pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * PAUSE_GROWTH);
    if (steps === OUTAGE_STEPS) subscribers.recover("audit");
  }
}

function* stepsOf(context: ScenarioContext, chains: Chains): Generator<Step> {
  const { api, sources, days } = context;
  const quiet = { ...context, printLine: () => undefined };
  let failedRun: string | undefined;

  /** `failures`: 1 makes the node retry; as many as it has attempts make the run fail, and the next step retries it. */
  async function load(day: string, failures: number): Promise<string> {
    const opTime = opTimeOf(day);
    context.shop.failNext(failures);
    const { runId, status } = await runChain(api, chains.orders, { opTime });
    if (failures > 0) await printAttempts(context, "orders", runId);
    if (status === "FAILED") failedRun = runId;
    return `orders of ${opTime}: ${status}`;
  }
  async function retry(): Promise<string> {
    const runId = failedRun;
    failedRun = undefined;
    if (runId === undefined) return "no run has failed";
    await api.post(`api/v1/runs/${runId}:retry`);
    return `retried the failed run: ${await api.ended(runId)}`;
  }
  async function track(day: string, part: string): Promise<string> {
    const opTime = opTimeOf(day);
    const files = part === "" ? [visitsFile(opTime), clicksFile(opTime)] : [clicksFile(opTime, part)];
    await trackFiles(quiet, chains.visits, opTime, files);
    return `all stages done: ${files.map(({ filename }) => filename).join(", ")}`;
  }

  let previous = newestOf(days.scenario);
  for (const [index, day] of days.later.entries()) {
    const opTime = opTimeOf(day);
    yield () => load(day, index % 3 === 0 ? ATTEMPTS : index % 3);
    if (index % 3 === 0) yield retry;
    yield () => track(day, "");
    yield async () =>
      `REGIONS ${opTime} arrives and triggers: ${await announceRegions(context, chains.regions, opTime)}`;
    for (const source of SOURCE_NAMES)
      yield async () =>
        `${source} of ${day}: ${(await harvest(context, source, [day])).reconciliation.received} records`;
    const signedOff = opTimeOf(previous);
    yield async () => `${SIGN_OFF} ${signedOff} arrives; models that run: ${await announce(api, SIGN_OFF, signedOff)}`;
    previous = day;
  }

  const newest = newestOf(days.later);
  for (let round = 1; ; round += 1) {
    yield () => track(newest, `-${round}`);
    yield () => load(newest, round % 4 === 0 ? ATTEMPTS : round % 2);
    if (round % 4 === 0) yield retry;
    for (const source of SOURCE_NAMES)
      yield async () => {
        sources.addLate(source, newest);
        const { reconciliation } = await harvest(context, source, [newest]);
        return `${source} of ${newest}, again: ${reconciliation.inserted} new`;
      };
  }
}
