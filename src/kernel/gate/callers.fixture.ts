/** Starts processes that call through a gate (child.fixture.ts), and what several of them did together. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { programOf } from "../../../test/program.ts";
import type { Job, Report } from "./child.fixture.ts";
import { type CountingService, worstSecond } from "./counting-service.fixture.ts";

export interface Caller {
  /** Says the word, and returns what the process reports. */
  go(): Promise<unknown>;
  kill(): Promise<void>;
}

/** Started, and waiting for the word to go. */
export async function startCaller(job: Job): Promise<Caller> {
  const program = await programOf(fileURLToPath(new URL("child.fixture.ts", import.meta.url)));
  const child = fork(program, [JSON.stringify(job)], { execArgv: [] });
  const exited = once(child, "exit");
  const next = async (): Promise<unknown> => {
    const ended = exited.then(([code]) => Promise.reject(new Error(`the process ended with ${code}`)));
    const [report] = (await Promise.race([once(child, "message"), ended])) as unknown[];
    return report;
  };
  const ready = await next();
  if (ready !== "ready") throw new Error(`the process reports ${String(ready)}`);
  return {
    go() {
      child.send("go");
      return next();
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

export interface Outcome {
  calls: number;
  worstByGrant: number;
  worstAsCounted: number;
  /** Of the declared rate. */
  share: number;
  givenUp: number;
}

/** Lets all of them call the service for their time. */
export async function callTogether(
  callers: readonly Caller[],
  service: CountingService,
  ratePerSec: number,
): Promise<Outcome> {
  service.reset();
  const reports = (await Promise.all(callers.map((caller) => caller.go()))) as Report[];
  const grants = reports.flatMap(({ dueAtMs }) => dueAtMs);
  if (service.came.length !== grants.length) throw new Error("there are calls without a permit");
  const spanSec = (Math.max(...grants) - Math.min(...grants)) / 1_000;
  return {
    calls: grants.length,
    worstByGrant: worstSecond(grants),
    worstAsCounted: worstSecond(service.came),
    share: (grants.length - 1) / spanSec / ratePerSec,
    givenUp: reports.reduce((sum, report) => sum + report.givenUp, 0),
  };
}
