/**
 * Admission of requests before their bodies are read. Without it, a tenant with a hundred connections would get a hundred
 * times the processor time of a tenant with one. Tenants that send at the same time get equal shares of the places; a single
 * one may use all. Of the memory for bodies a tenant may use as much as is still free, so some is left for the next.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { kernelError } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";

export interface Admission {
  /** Resolves when it is this request's turn; its place is free again once it is answered. */
  enter(request: FastifyRequest, reply: FastifyReply, bodyLimitBytes: number): Promise<void>;
}

/** Enough to collect one batch of events while the one before is written. */
const PLACES = 128;
const BYTES_MAX = 64 * 1_048_576;
const SHARE_MIN = 4;
/** A body up to this size, as nearly all are, is admitted at once if its tenant has no other, whatever others use. */
const SMALL_BYTES = 262_144;
/** The assumed ratio of a body's inflated size to its compressed size. */
const INFLATION = 8;
const WAITING_MAX = 2_000;
const RETRY_AFTER_SECONDS = 1;
/** A tenant that has sent something this recently counts among those that share the places. */
const RECENT_MS = 1_000;

interface Sender {
  inside: number;
  bytes: number;
  line: { bytes: number; letIn: () => void }[];
  seenAt: number;
}

export function createAdmission({ clock }: { clock: Clock }): Admission {
  const senders = new Map<string, Sender>();
  let bytesInside = 0;

  function share(): number {
    const since = clock.now() - RECENT_MS;
    let sharing = 0;
    for (const [name, sender] of senders) {
      if (sender.inside > 0 || sender.line.length > 0 || sender.seenAt > since) sharing += 1;
      else senders.delete(name);
    }
    return Math.max(SHARE_MIN, Math.floor(PLACES / Math.max(1, sharing)));
  }

  function fits(sender: Sender, bytes: number, most: number): boolean {
    if (sender.inside >= most) return false;
    if (sender.inside === 0 && bytes <= SMALL_BYTES) return true;
    // A body larger than the limit is admitted when there is no other.
    return bytesInside === 0 || sender.bytes + bytes <= BYTES_MAX - bytesInside;
  }

  function letIn(sender: Sender, bytes: number): void {
    sender.inside += 1;
    sender.bytes += bytes;
    bytesInside += bytes;
  }

  function leave(sender: Sender, bytes: number): void {
    sender.inside -= 1;
    sender.bytes -= bytes;
    bytesInside -= bytes;
    const most = share();
    // A free place may serve any of the waiting senders.
    for (const other of senders.values()) {
      for (let next = other.line[0]; next && fits(other, next.bytes, most); next = other.line[0]) {
        letIn(other, next.bytes); // Counted before it continues: others may leave at the same moment.
        other.line.shift();
        next.letIn();
      }
    }
  }

  return {
    async enter({ caller, headers }, reply, bodyLimitBytes) {
      const name = caller.tenantId ?? caller.keyId ?? caller.name;
      const bytes = weightOf(headers, bodyLimitBytes);
      const sender = senders.get(name) ?? { inside: 0, bytes: 0, line: [], seenAt: 0 };
      senders.set(name, sender);
      sender.seenAt = clock.now();
      if (sender.line.length === 0 && fits(sender, bytes, share())) {
        letIn(sender, bytes);
      } else {
        if (sender.line.length >= WAITING_MAX) {
          throw kernelError("OVERLOADED", { waiting: sender.line.length, seconds: RETRY_AFTER_SECONDS });
        }
        await new Promise<void>((resolve) => sender.line.push({ bytes, letIn: resolve }));
      }
      if (reply.raw.destroyed || reply.raw.closed) leave(sender, bytes);
      else reply.raw.once("close", () => leave(sender, bytes));
    },
  };
}

/** The size of the body in memory as estimated from the headers, up to its limit, beyond which it is refused. */
function weightOf(headers: FastifyRequest["headers"], limit: number): number {
  const length = Number(headers["content-length"] ?? limit);
  const isCompressed = (headers["content-encoding"] ?? "identity") !== "identity";
  return Math.min(limit, isCompressed ? length * INFLATION : length);
}
