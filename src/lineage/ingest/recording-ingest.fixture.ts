/** An `Ingest` that remembers what it was given and answers what a test wants: for tests of the HTTP side alone. */
import type { Ingest, Prepared, Taken, TakingTenant } from "./ingest.ts";
import { incomingOf } from "./intake.ts";

export interface RecordingIngest extends Ingest {
  taken: (Prepared & { tenant: TakingTenant })[];
  replayed: string[];
  /** What the next ones become; a function may throw. */
  becomes(answer: (body: string) => Partial<Taken>): void;
}

export function recordingIngest(makeReady: Ingest["makeReady"]): RecordingIngest {
  let answer: (body: string) => Partial<Taken> = () => ({});
  const taken: RecordingIngest["taken"] = [];
  const replayed: string[] = [];
  const whole = (id: string, part: Partial<Taken>): Taken => ({ id, duplicate: false, state: "APPLIED", ...part });
  return {
    taken,
    replayed,
    becomes(next) {
      answer = next;
    },
    prepare: (_tenantId, read) => ({ ...incomingOf(read), key: read.body }),
    async take(tenant, prepared) {
      if ("again" in prepared) throw new Error("nothing is taken twice here");
      const part = answer(prepared.body);
      taken.push({ ...prepared, tenant });
      return whole(String(taken.length), part);
    },
    async replay(tenantId, eventId) {
      replayed.push(`${tenantId}/${eventId}`);
      return whole(eventId, answer(eventId));
    },
    makeReady,
    drain: async () => {},
  };
}
