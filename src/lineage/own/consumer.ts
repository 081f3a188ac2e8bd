/** The outbox consumer that passes Millrace's own lineage events to ingest, under the tenant in the settings. */
import type { OutboxConsumer } from "../../kernel/work/outbox.ts";
import { createSlots } from "../../kernel/work/slots.ts";
import { parseEvent } from "../ingest/event.ts";
import type { Ingest, TakingTenant } from "../ingest/ingest.ts";

export const OWN_TOPIC = "lineage.own";

/** The events of one run, word for word. */
export interface OwnEvents {
  bodies: string[];
}

/** Enough to fill a commit, and few against what may wait to be written: those who send over HTTP come first. */
const EVENTS_AT_ONCE = 100;
const TIMEOUT_MS = 60_000;

export function createConsumer(tenant: TakingTenant, ingest: Pick<Ingest, "prepare" | "take">): OutboxConsumer {
  const slots = createSlots(EVENTS_AT_ONCE);

  async function take(body: string): Promise<void> {
    const event = parseEvent(JSON.parse(body));
    await ingest.take(tenant, ingest.prepare(tenant.id, { event, body, source: "COMPUTE_ENGINE", baseline: false }));
  }

  return {
    name: "own_lineage",
    topics: [OWN_TOPIC],
    timeoutMs: TIMEOUT_MS,
    // A sink that has too much to do says so, and has hours to recover.
    retry: { maxAttempts: 100, baseMs: 1_000, factor: 2, capMs: 300_000, jitter: 0.2 },
    async deliver({ payload }, signal) {
      const failures: unknown[] = [];
      const onTheWay: Promise<void>[] = [];
      for (const body of (payload as OwnEvents).bodies) {
        if (failures.length > 0) break;
        const giveBack = await slots.take(signal);
        onTheWay.push(
          take(body)
            .catch((error: unknown) => void failures.push(error))
            .finally(giveBack),
        );
      }
      await Promise.all(onTheWay);
      if (failures.length > 0) throw failures[0];
    },
  };
}
