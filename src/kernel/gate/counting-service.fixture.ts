/**
 * A service that counts the requests of a second, as a provider with a limit does. A machine that is busy with other things
 * does not let its process run for a while, and requests that came one after the other are then read in one moment. Such a
 * request counts from when it was sent, but not from before that pause.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { KEEP_ALIVE_MS, SENT_HEADER, sharedClockMs } from "./child.fixture.ts";

const TICK_MS = 2;
/** A tick that is later than this shows a pause. */
const PAUSE_MS = 8;

export interface CountingService {
  url: string;
  /** When requests came since the last `reset`, in milliseconds. */
  readonly came: readonly number[];
  longestPauseMs(): number;
  reset(): void;
  stop(): Promise<void>;
}

export async function startCountingService(): Promise<CountingService> {
  const came: number[] = [];
  let pause = { from: 0, to: 0 };
  let longestPauseMs = 0;
  let ticked = sharedClockMs();
  function tick(): void {
    const now = sharedClockMs();
    if (now - ticked > PAUSE_MS) {
      pause = { from: ticked, to: now };
      longestPauseMs = Math.max(longestPauseMs, now - ticked);
    }
    ticked = now;
  }
  const server = createServer((request, response) => {
    tick();
    const sent = Number(request.headers[SENT_HEADER]);
    const isAfterPause = ticked - pause.to < PAUSE_MS;
    if (!Number.isNaN(sent)) came.push(isAfterPause ? Math.max(sent, pause.from) : ticked);
    response.end();
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const ticking = setInterval(tick, TICK_MS);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    came,
    longestPauseMs: () => longestPauseMs,
    reset() {
      came.length = 0;
      longestPauseMs = 0;
    },
    async stop() {
      clearInterval(ticking);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The most moments in any closed window of a second. */
export function worstSecond(momentsMs: readonly number[]): number {
  const sorted = momentsMs.toSorted((a, b) => a - b);
  let from = 0;
  let worst = 0;
  for (const [to, moment] of sorted.entries()) {
    while (moment - (sorted[from] ?? 0) > 1_000) from += 1;
    worst = Math.max(worst, to - from + 1);
  }
  return worst;
}
