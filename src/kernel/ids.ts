/** Creates ids and tokens. Ids are UUIDv7: they sort by creation time, so new rows are together at the end of an index. */
import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "./time/clock.ts";

export interface Ids {
  /** A UUIDv7, greater than every earlier one of this instance. */
  uuid(): string;
  /** `bytes` random bytes as base64url text: keys, one-time links. */
  token(bytes: number): string;
}

export interface IdsOptions {
  clock: Clock;
  random: (bytes: number) => Buffer;
}

export const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

const COUNTER_MAX = 0xfff;
/** A counter starts in its lower half, so that each millisecond has room for at least 2,048 ids. */
const COUNTER_SEED_MASK = 0x7ff;

export function createIds({ clock, random }: IdsOptions): Ids {
  let lastMs = -1;
  let counter = 0;

  return {
    // The layout of RFC 9562, section 5.7, with the 12 bits of `rand_a` as a counter (section 6.2, method 1).
    uuid() {
      const bytes = random(16);
      const seed = bytes.readUInt16BE(6) & COUNTER_SEED_MASK;
      const nowMs = clock.now();
      if (nowMs > lastMs) {
        lastMs = nowMs;
        counter = seed;
      } else if (counter < COUNTER_MAX) {
        counter += 1;
      } else {
        // The counter of this millisecond is used up. Using the next millisecond keeps the order without blocking.
        lastMs += 1;
        counter = seed;
      }
      bytes.writeUIntBE(lastMs, 0, 6);
      bytes.writeUInt16BE(0x7000 | counter, 6);
      bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
      return hexAsUuid(bytes.toString("hex"));
    },
    token: (bytes) => random(bytes).toString("base64url"),
  };
}

/** 32 hex digits with the dashes of a UUID. */
export function hexAsUuid(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

const BUFFER_BYTES = 4_096;

/** Random bytes from a buffer: generating 16 bytes costs nearly as much as 4,096. No byte is used twice. */
function bufferedRandom(): (bytes: number) => Buffer {
  let buffer = Buffer.alloc(0);
  return (bytes) => {
    if (bytes > BUFFER_BYTES) return randomBytes(bytes);
    if (buffer.length < bytes) buffer = randomBytes(BUFFER_BYTES);
    const taken = buffer.subarray(0, bytes);
    buffer = buffer.subarray(bytes);
    return taken;
  };
}

export const systemIds: Ids = createIds({ clock: systemClock, random: bufferedRandom() });
