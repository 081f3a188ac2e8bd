/** Runs the demo: starts the servers, runs the scenario, checks the results, and stays up until Ctrl-C unless `once` is set. */
import { EXIT } from "../cli/common/exit-codes.ts";
import { OperatorError } from "../kernel/errors.ts";
import { type Api, createApi } from "./api.ts";
import { type Check, checkScenario, holds } from "./checks.ts";
import type { DemoServer } from "./demo-server.ts";
import { nextSteps, report, reportJson } from "./report.ts";
import { runScenario, type ScenarioContext } from "./scenario.ts";
import { startShop } from "./shop.ts";
import { startSubscribers } from "./subscribers.ts";

export interface DemoOptions {
  open: (printLine: (line: string) => void) => Promise<DemoServer>;
  /** Exits after the checks instead of staying up. */
  once: boolean;
  json: boolean;
  print: (text: string) => void;
  /** Ctrl-C. */
  stopping: AbortSignal;
}

/** The exit code that shells use for a command ended by Ctrl-C. */
const INTERRUPTED = 130;

/** Returns the exit code: 0 only if every check holds. */
export async function runDemo({ open, once, json, print, stopping }: DemoOptions): Promise<number> {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  const printLine = (line: string) => (json ? undefined : print(`${seconds().toFixed(1).padStart(5)} s  ${line}`));
  const toClose: (() => Promise<void>)[] = [];
  try {
    const shop = await startShop();
    toClose.push(shop.close);
    const subscribers = await startSubscribers({
      onReceived: ({ team, modelId, generation, rerun }) =>
        printLine(
          `${team} receives ${modelId}, generation ${generation}${rerun ? ", a rerun" : ""}; its signature is valid`,
        ),
    });
    toClose.push(subscribers.close);
    const server = await open(printLine);
    toClose.push(server.close); // Closed before the others, because it calls them.
    stopping.throwIfAborted();
    printLine(`Millrace listens at ${server.url}`);

    const api = createApi(server, stopping);
    const checks = await checksOf(api, { api, shopUrl: shop.url, subscribers, tablesDir: server.tablesDir, printLine });
    const { url, key } = server;
    print(json ? reportJson(checks, seconds(), once ? {} : { url, key }) : report(checks, seconds()));
    if (!once) {
      if (!json) print(nextSteps(server));
      await aborted(stopping);
    }
    return checks.every(holds) ? EXIT.ok : EXIT.failed;
  } catch (error) {
    if (stopping.aborted) return INTERRUPTED;
    throw error;
  } finally {
    for (const close of toClose.toReversed()) await close();
  }
}

async function checksOf(api: Api, context: ScenarioContext): Promise<Check[]> {
  try {
    return await checkScenario(api, await runScenario(context), context.subscribers);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    // A call was refused, so the rest of the scenario did not run.
    return [{ what: "the scenario", found: error.message, expected: "no refused call", source: "" }];
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
