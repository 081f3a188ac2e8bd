/**
 * Limits what waits to be written in one process. A tenant may have as much waiting as is still free: half of the limit when
 * it is alone, a third each when there are two, and so on. So a flood from one leaves space for the next.
 */
import { kernelError } from "../../kernel/errors.ts";
import type { LineageSettings } from "../settings.ts";

export interface WaitingLimit {
  /** Returns what gives the place back. Throws OVERLOADED. */
  enter(tenantId: string, bytes: number): () => void;
}

interface Waiting {
  events: number;
  bytes: number;
}

const RETRY_AFTER_SECONDS = 1;

export function createWaitingLimit(settings: Pick<LineageSettings, "waitingMax" | "waitingBytesMax">): WaitingLimit {
  const { waitingMax, waitingBytesMax } = settings;
  const all: Waiting = { events: 0, bytes: 0 };
  const tenants = new Map<string, Waiting>();

  function fits(own: Waiting, bytes: number): boolean {
    const free: Waiting = { events: waitingMax - all.events, bytes: waitingBytesMax - all.bytes };
    // Of any size: one that is larger than the limit would otherwise never be taken.
    if (own.events === 0) return free.events > 0 && free.bytes > 0;
    return own.events < free.events && own.bytes + bytes <= free.bytes;
  }

  return {
    enter(tenantId, bytes) {
      const own = tenants.get(tenantId) ?? { events: 0, bytes: 0 };
      if (!fits(own, bytes)) throw kernelError("OVERLOADED", { waiting: all.events, seconds: RETRY_AFTER_SECONDS });
      tenants.set(tenantId, own);
      for (const waiting of [own, all]) {
        waiting.events += 1;
        waiting.bytes += bytes;
      }
      return () => {
        for (const waiting of [own, all]) {
          waiting.events -= 1;
          waiting.bytes -= bytes;
        }
        if (own.events === 0) tenants.delete(tenantId);
      };
    },
  };
}
