/**
 * Reads the body of an event as text, because the exact text is stored. It may be compressed: the limit holds for the received
 * and for the inflated bytes, and inflating stops at the limit.
 */
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { FastifyRequest } from "fastify";
import { invalid, kernelError } from "../../kernel/errors.ts";
import { textOf } from "../../kernel/http/body.ts";
import { readBody } from "../../kernel/http/read-body.ts";
import type { Http } from "../../kernel/http/server.ts";
import { lineageError } from "../catalogue.ts";

const inflate = promisify(gunzip);
/** The end of a gzip file: the size of what was compressed. */
const SIZE_BYTES = 4;

/**
 * Makes every body in this scope a string. The schemas of the bodies are for the readers of the API: whether a text is an
 * event is for the parser of events to say, which names the place.
 */
export function useEventTexts(scope: Http, limitOf: (request: FastifyRequest) => Promise<number>): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("application/json", async (request: FastifyRequest, payload: Readable) => {
    const encoding = request.headers["content-encoding"]?.toLowerCase().trim() ?? "identity";
    const isGzip = encoding === "gzip" || encoding === "x-gzip";
    if (!isGzip && encoding !== "identity") {
      throw lineageError("UNSUPPORTED_ENCODING", {}, { encoding: encoding.slice(0, 64) });
    }
    const limit = await limitOf(request);
    const received = await readBody(payload, { limit });
    request.holdBytes(received.length);
    return textOf(isGzip ? await inflated(received, limit, (bytes) => void request.holdBytes(bytes)) : received);
  });
  const inherited = scope.validatorCompiler;
  scope.setValidatorCompiler((part) => (part.httpPart === "body" || !inherited ? () => true : inherited(part)));
}

/**
 * `hold` counts the bytes before they are there. How many there will be is written at the end of the compressed ones; if
 * there are more, because that is wrong or the size of the last part only, then as many are counted as there may be.
 */
async function inflated(compressed: Buffer, limit: number, hold: (bytes: number) => void): Promise<Buffer> {
  const announced = compressed.length < SIZE_BYTES ? limit : compressed.readUInt32LE(compressed.length - SIZE_BYTES);
  const expected = Math.max(1, Math.min(announced, limit));
  hold(expected);
  const inflatedAsExpected = await inflateUpTo(compressed, expected);
  if (inflatedAsExpected) return inflatedAsExpected;
  hold(limit - expected);
  const whole = expected < limit ? await inflateUpTo(compressed, limit) : undefined;
  if (!whole) throw kernelError("BODY_TOO_LARGE", { limit });
  return whole;
}

/** Nothing if there are more bytes. */
async function inflateUpTo(compressed: Buffer, maxOutputLength: number): Promise<Buffer | undefined> {
  try {
    return await inflate(compressed, { maxOutputLength });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ERR_BUFFER_TOO_LARGE") return undefined;
    if (code?.startsWith("Z_")) throw invalid("The body is not the gzip that its Content-Encoding says it is");
    throw error;
  }
}
