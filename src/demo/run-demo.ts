/** Runs the demo: starts the servers, runs the scenario, checks the results, and stays up until Ctrl-C unless `once` is set. */
import { EXIT } from "../cli/common/exit-codes.ts";
import { OperatorError } from "../kernel/errors.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { createApi } from "./api.ts";
import { keepBusy } from "./background-activity.ts";
import { type Check, checkScenario, holds } from "./checks.ts";
import { daysBefore, newestOf, opTimeOf } from "./days.ts";
import type { DemoServer } from "./demo-server.ts";
import { createLinks } from "./links.ts";
import type { DemoOutput } from "./output.ts";
import { nextSteps, report, reportJson, timed } from "./report.ts";
import { type Observed, runScenario, type ScenarioContext } from "./scenario.ts";
import { startShop } from "./shop.ts";
import { startSources } from "./sources.ts";
import { startSubscribers } from "./subscribers.ts";

export interface DemoOptions {
  /** `privateHosts` are those of the simulators, which the server may call. */
  open: (options: { printLine: (line: string) => void; privateHosts: readonly string[] }) => Promise<DemoServer>;
  /** Exits after the checks instead of staying up. */
  once: boolean;
  json: boolean;
  output: DemoOutput;
  /** Ctrl-C. */
  stopping: AbortSignal;
}

/** The exit code that shells use for a command ended by Ctrl-C. */
const INTERRUPTED = 130;

/** Returns the exit code: 0 only if every check passes. */
export async function runDemo({ open, once, json, output, stopping }: DemoOptions): Promise<number> {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  const printLine = (line: string) => (json ? undefined : output.print(timed(seconds(), line, output.columns())));
  const toClose: (() => Promise<void>)[] = [];
  try {
    const shop = await startShop();
    toClose.push(shop.close);
    const days = daysBefore(systemClock);
    const sources = await startSources(days);
    toClose.push(sources.close);
    const subscribers = await startSubscribers({
      onReceived: ({ team, modelId, opTime, generation, rerun }) =>
        printLine(
          `${team} receives ${modelId} ${opTime}, generation ${generation}${rerun ? " (rerun)" : ""}, signature valid`,
        ),
    });
    toClose.push(subscribers.close);
    const server = await open({ printLine, privateHosts: sources.hosts });
    toClose.push(server.close); // Closed before the others, because it calls them.
    stopping.throwIfAborted();
    printLine(`Millrace is listening on ${server.url}`);

    const { url, key, tablesDir } = server;
    const api = createApi(server, stopping);
    const context: ScenarioContext = {
      api,
      access: { url, key },
      days,
      sources,
      shop,
      subscribers,
      tablesDir,
      output: json ? { ...output, draw: undefined } : output,
      printLine,
      signal: stopping,
    };
    const { checks, observed } = await checksOf(context);
    const took = seconds();
    if (once) {
      output.print(json ? reportJson(checks, took, {}) : report(checks, took, output.columns()));
    } else {
      const links = await createLinks(api, url, observed?.firstRunId);
      const more = { url, key, links, opTime: opTimeOf(newestOf(days.scenario)), columns: output.columns() };
      output.print(
        json
          ? reportJson(checks, took, { url, key, ...links })
          : `${report(checks, took, output.columns())}\n${nextSteps(more)}`,
      );
      if (observed) await keepBusy(context, observed.chains);
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

async function checksOf(context: ScenarioContext): Promise<{ checks: Check[]; observed?: Observed }> {
  try {
    const observed = await runScenario(context);
    return { checks: await checkScenario(context, observed), observed };
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    // A call was refused, so the rest of the scenario did not run.
    return { checks: [{ what: "the scenario", found: error.message, expected: "no refused call", source: "" }] };
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
