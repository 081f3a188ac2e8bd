/**
 * A process that calls a service through a gate, for tests with several of them: it opens its database, reports that it is
 * ready and waits for the word to go. Then it calls for a time and reports its permits, or it holds a slot until it is killed.
 */
import { Agent } from "undici";
import { type Connection, openDb } from "../data/db.ts";
import { openPulse } from "../work/pulse.ts";
import { openSession } from "../work/session.ts";
import { createWake } from "../work/wake.ts";
import { openGates, silent } from "./gates.fixture.ts";

export interface Job {
  connection: Connection;
  key: string;
  /** Without it, the process takes a slot and keeps it. */
  calls?: {
    serviceUrl: string;
    /** Requests at a time. */
    loops: number;
    forMs: number;
  };
}

export interface Report {
  dueAtMs: number[];
  givenUp: number;
}

/** The header with the time of sending, by the clock that processes of a machine share. */
export const SENT_HEADER = "x-sent-ms";
const SESSION_TTL_SECONDS = 2;

/** Connections stay open: a request that opens one comes later than it was sent. */
export const KEEP_ALIVE_MS = 120_000;

export function sharedClockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

async function callForATime(job: Job, { serviceUrl, loops, forMs }: NonNullable<Job["calls"]>): Promise<void> {
  const db = openDb({ connection: job.connection, poolSize: 3 });
  const gates = await openGates(db);
  const agent = new Agent({ connections: loops, pipelining: 1, keepAliveTimeout: KEEP_ALIVE_MS });
  const call = async (headers: Record<string, string>) => {
    const { body } = await agent.request({ origin: serviceUrl, path: "/", method: "GET", headers });
    await body.dump();
  };
  for (let n = 0; n < 3; n += 1) await Promise.all(Array.from({ length: loops }, () => call({}))); // Opens the connections.
  await toGo();

  const dueAtMs: number[] = [];
  const end = performance.now() + forMs;
  const loop = async (_: unknown, index: number) => {
    while (performance.now() < end) {
      const request = { task: `task ${index}`, gates: [{ key: job.key }] };
      const permit = await gates.take(request, { maxWaitMs: Math.max(0, end - performance.now()) });
      if (permit.kind === "rejected") return;
      dueAtMs.push(permit.dueAtMs);
      await call({ [SENT_HEADER]: String(sharedClockMs()) });
      await permit.release();
    }
  };
  await Promise.all(Array.from({ length: loops }, loop));
  const givenUp = Number(/^millrace_gate_permits_given_up_total (\d+)/m.exec(await gates.metrics())?.[1] ?? 0);
  process.send?.({ dueAtMs, givenUp } satisfies Report);
  await agent.close();
  await db.close();
  process.disconnect();
}

async function holdSlot(job: Job): Promise<void> {
  const db = openDb({ connection: job.connection, poolSize: 2 });
  const pulse = await openPulse({ db, log: silent });
  const settings = { ttlSeconds: SESSION_TTL_SECONDS, heartbeatIntervalMs: 300, roles: [], version: "test" };
  const session = await openSession({ pulse, log: silent, ...settings });
  session.service.start();
  const gates = await openGates(db, { session, wake: createWake({ pulse, log: silent }) });
  await toGo();
  const taken = await gates.take({ task: "holder", gates: [{ key: job.key }] }, { maxWaitMs: 30_000 });
  process.send?.(taken.kind);
}

function toGo(): Promise<void> {
  const going = new Promise<void>((resolve) => process.once("message", () => resolve()));
  process.send?.("ready");
  return going;
}

const [, , given] = process.argv;
if (given?.startsWith("{")) {
  const job = JSON.parse(given) as Job;
  void (job.calls ? callForATime(job, job.calls) : holdSlot(job));
}
