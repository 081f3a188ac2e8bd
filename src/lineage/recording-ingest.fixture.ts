/** An `Ingest` that remembers what it was given and answers what a test wants: for tests of the HTTP side alone. */
import type { Ingest, Taken } from "./ingest.ts";
import { incomingOf } from "./intake.ts";

export interface RecordingIngest extends Ingest {
  taken: Parameters<Ingest["take"]>[0][];
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
    prepare: (_tenantId, read) => incomingOf(read),
    async take(input) {
      const part = answer(input.body);
      taken.push(input);
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
