/**
 * Reads the body of a request up to its limit. Its bytes are counted before they are there, or as they come if the caller does
 * not say how many: many bodies that come slowly take as much memory as many that are complete.
 */
import type { Readable } from "node:stream";
import { kernelError } from "../errors.ts";

interface ReadBodyOptions {
  limit: number;
  /** What the `Content-Length` says; without one, undefined. */
  declared?: number | undefined;
  /** Counts that many bytes, and returns what stops counting them. Throws if there are too many. Unset: not counted. */
  hold?: (bytes: number) => () => void;
}

/** So many bytes of a body of unknown length may be there uncounted. Each count takes memory itself. */
const STEP_BYTES = 65_536;

/** By its events, which cost less than an async iterator: nearly all bodies come in one piece. */
export function readBody(payload: Readable, { limit, declared = 0, hold }: ReadBodyOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (declared > limit) return reject(kernelError("BODY_TOO_LARGE", { limit }));
    const disconnected = () => reject(new Error("the caller disconnected before the body was complete"));
    if (payload.destroyed) return disconnected(); // While it waited for its turn. There will be no event.
    const chunks: Buffer[] = [];
    let size = 0;
    let held = 0;
    let letGo = () => {};
    let refusal: Error | undefined;

    /** All at once, because the first body of a caller may be larger than what several may have together. */
    function holdAll(bytes: number): void {
      if (!hold || refusal || bytes <= held) return;
      letGo();
      try {
        letGo = hold(bytes);
        held = bytes;
      } catch (error) {
        // The rest is read and dropped: a connection that is closed while the caller sends may lose the answer.
        refusal = error as Error;
        chunks.length = 0;
      }
    }

    function add(chunk: Buffer): void {
      size += chunk.length;
      if (size > limit) {
        // No longer read; its socket stays, for the answer.
        payload.off("data", add).pause();
        return reject(refusal ?? kernelError("BODY_TOO_LARGE", { limit }));
      }
      if (size - held >= STEP_BYTES) holdAll(size);
      if (!refusal) chunks.push(chunk);
    }

    holdAll(declared);
    payload.on("data", add);
    payload.once("end", () => {
      holdAll(size);
      if (refusal) reject(refusal);
      else resolve(Buffer.concat(chunks, size));
    });
    payload.once("error", reject);
    payload.once("close", disconnected);
  });
}
