/** Reads the body of a response within its limits, as it is or decompressed. A part of a body is never taken for the whole. */
import { pipeline } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, type ZlibOptions } from "node:zlib";
import { messageOf } from "../text/message-of.ts";
import { OutboundFailed } from "./outbound-errors.ts";

export const ACCEPTED_ENCODINGS = "gzip, deflate, br";

interface BodyLimits {
  /** Of the bytes that are received, if they are compressed. */
  wireLimitBytes: number;
  /** Of the bytes that are returned. */
  bodyLimitBytes: number;
}

/** Fewer, larger chunks: each is one hop through Node's thread pool. */
const DECODER = { chunkSize: 65_536 } satisfies ZlibOptions;
/** The low bits of a zlib header; without one, it is raw deflate, which some servers send under the same name. */
const ZLIB_METHOD = 8;

/** With an encoding, decompressed. Throws OutboundFailed after the last byte within the limits. */
export function readWithin(
  { wireLimitBytes, bodyLimitBytes }: BodyLimits,
  wire: AsyncIterable<Buffer>,
  encoding = "identity",
): AsyncIterable<Buffer> {
  const name = encoding.trim().toLowerCase();
  if (name === "identity" || name === "") return limited(wire, bodyLimitBytes, "body");
  const compressed = limited(wire, wireLimitBytes, "compressed body");
  return limited(decoded(compressed, name), bodyLimitBytes, "decompressed body");
}

async function* limited(chunks: AsyncIterable<Buffer>, limit: number, what: string): AsyncGenerator<Buffer> {
  let left = limit;
  for await (const chunk of chunks) {
    if (chunk.length > left) {
      if (left > 0) yield chunk.subarray(0, left);
      const sentence = `the ${what} is larger than ${limit} bytes`;
      throw new OutboundFailed(sentence, { reason: "too-large", sent: true });
    }
    left -= chunk.length;
    yield chunk;
  }
}

async function* decoded(compressed: AsyncGenerator<Buffer>, encoding: string): AsyncGenerator<Buffer> {
  const first = await compressed.next();
  // Some servers name an encoding where there is no body, as after HEAD.
  if (first.done) return;
  const decoder = decoderOf(encoding, first.value);
  let failure: unknown;
  async function* source(chunk: Buffer) {
    try {
      yield chunk;
      yield* compressed;
    } catch (error) {
      failure = error;
      throw error;
    }
  }
  // Its errors come out of the decoder.
  pipeline(source(first.value), decoder, () => {});
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === "Z_BUF_ERROR" ? "incomplete" : "unreadable";
    const sentence = `the body is not complete ${encoding}: ${messageOf(error)}`;
    throw failure ?? new OutboundFailed(sentence, { reason, sent: true, cause: error });
  }
}

function decoderOf(encoding: string, [firstByte = 0]: Buffer) {
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return createGunzip(DECODER);
    case "deflate":
      return (firstByte & 0x0f) === ZLIB_METHOD ? createInflate(DECODER) : createInflateRaw(DECODER);
    case "br":
      return createBrotliDecompress(DECODER);
    default:
      throw new OutboundFailed(
        `the content-encoding of the body is ${encoding.slice(0, 64)}, and only ${ACCEPTED_ENCODINGS} can be read`,
        { reason: "unreadable", sent: true },
      );
  }
}
