/**
 * Limits the bytes of bodies that a process holds for requests in flight, inflated, for each key and in all: each body is
 * within its own limit, but many at once would exhaust the memory that all callers share.
 */
import { kernelError } from "../errors.ts";

export interface BytesInFlight {
  /** Returns what gives them back, once. Throws TOO_MANY_BYTES. */
  take(key: string, bytes: number): () => void;
}

export interface BytesInFlightLimits {
  keyBytesMax: number;
  bytesMax: number;
}

const MEBIBYTE = 1_048_576;
/** A parsed body takes several times its bytes. */
export const BYTES_IN_FLIGHT: BytesInFlightLimits = { keyBytesMax: 64 * MEBIBYTE, bytesMax: 256 * MEBIBYTE };
const RETRY_AFTER_SECONDS = 1;

export function createBytesInFlight({ keyBytesMax, bytesMax }: BytesInFlightLimits): BytesInFlight {
  const keys = new Map<string, number>();
  let inAll = 0;

  /** One body comes in whatever its size: its own limit may be larger than what all may have together. */
  function refuseMore(held: number, bytes: number, limit: number, who: string): void {
    if (held === 0 || held + bytes <= limit) return;
    throw kernelError("TOO_MANY_BYTES", { limit, seconds: RETRY_AFTER_SECONDS }, { who });
  }

  return {
    take(key, bytes) {
      const own = keys.get(key) ?? 0;
      refuseMore(own, bytes, keyBytesMax, "this key");
      refuseMore(inAll, bytes, bytesMax, "all callers together");
      keys.set(key, own + bytes);
      inAll += bytes;
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        inAll -= bytes;
        const left = (keys.get(key) ?? 0) - bytes;
        if (left > 0) keys.set(key, left);
        else keys.delete(key);
      };
    },
  };
}
