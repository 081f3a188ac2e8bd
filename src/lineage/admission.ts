/**
 * Lets requests in to send their bodies. Reading an event takes the process some work whoever sends it, so without this a
 * tenant with a hundred connections would get a hundred times the share of one with a single one, and everyone would wait
 * behind it. While others send too, each gets an even share of the room; alone, a tenant may fill it. Bodies take room in
 * memory as well: of that a tenant may have as much as is still free, which leaves some for whoever comes next.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { kernelError } from "../kernel/errors.ts";
import type { Clock } from "../kernel/time/clock.ts";

export interface Admission {
  /** Resolves when it is this request's turn; its place is free again when it has been answered. */
  enter(request: FastifyRequest, reply: FastifyReply, bodyLimitBytes: number): Promise<void>;
}

/** Room for one batch of events to be gathered while the one before is written. */
const ROOM = 128;
const ROOM_BYTES = 64 * 1_048_576;
const SHARE_MIN = 4;
/** Nearly every event is smaller, and who has nothing inside brings it in at once, however large the bodies of others are. */
const SMALL_BYTES = 262_144;
/** How much larger a body is taken to be once it is inflated; JSON of this kind often is. */
const INFLATION = 8;
const WAITING_MAX = 2_000;
const RETRY_AFTER_SECONDS = 1;
/** Who has sent something so recently is counted among those who share the room. */
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
    return Math.max(SHARE_MIN, Math.floor(ROOM / Math.max(1, sharing)));
  }

  function fits(sender: Sender, bytes: number, most: number): boolean {
    if (sender.inside >= most) return false;
    if (sender.inside === 0 && bytes <= SMALL_BYTES) return true;
    // One that is larger than all the room comes in when nothing else is there.
    return bytesInside === 0 || sender.bytes + bytes <= ROOM_BYTES - bytesInside;
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
    // Whoever leaves may have made room for any of them.
    for (const other of senders.values()) {
      for (let next = other.line[0]; next && fits(other, next.bytes, most); next = other.line[0]) {
        letIn(other, next.bytes); // Before it goes on: others may leave in the same moment.
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

/** What the body may measure in memory, as far as the headers tell; no more than its limit, since then it is refused. */
function weightOf(headers: FastifyRequest["headers"], limit: number): number {
  const length = Number(headers["content-length"] ?? limit);
  const isCompressed = (headers["content-encoding"] ?? "identity") !== "identity";
  return Math.min(limit, isCompressed ? length * INFLATION : length);
}
