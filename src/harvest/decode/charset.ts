/**
 * The characters of a body. Declarations are often wrong, so the bytes decide: what is valid UTF-8 is UTF-8, whatever is said
 * about it. Only other bytes are read as declared.
 */
import { isUtf8 } from "node:buffer";

/** Their bytes are valid UTF-8 and mean something else. */
const SEVEN_BIT: ReadonlySet<string> = new Set(["iso-2022-jp"]);

export interface Charset {
  encoding: string;
  /** Bytes before the text. */
  bom: number;
  /** Bytes that are not of the encoding become U+FFFD. */
  lossy: boolean;
}

/** `declared` are names of encodings, the most trusted first. */
export function charsetOf(bytes: Buffer, declared: readonly (string | undefined)[]): Charset {
  if (startsWith(bytes, 0xef, 0xbb, 0xbf)) return { encoding: "utf-8", bom: 3, lossy: !isUtf8(bytes) };
  if (startsWith(bytes, 0xff, 0xfe)) return { encoding: "utf-16le", bom: 2, lossy: false };
  if (startsWith(bytes, 0xfe, 0xff)) return { encoding: "utf-16be", bom: 2, lossy: false };
  // JSON and XML begin with an ASCII character, so UTF-16 without a mark shows in its first two bytes.
  if (bytes.length > 1 && bytes[0] !== 0 && bytes[1] === 0) return { encoding: "utf-16le", bom: 0, lossy: false };
  if (bytes.length > 1 && bytes[0] === 0 && bytes[1] !== 0) return { encoding: "utf-16be", bom: 0, lossy: false };

  const known = declared.map(knownEncoding).filter((encoding) => encoding !== undefined);
  const valid = isUtf8(bytes);
  const other = known.find((encoding) => (valid ? SEVEN_BIT.has(encoding) : !encoding.startsWith("utf-")));
  if (other !== undefined) return { encoding: other, bom: 0, lossy: false };
  return { encoding: "utf-8", bom: 0, lossy: !valid };
}

/** The `charset` of a Content-Type. */
export function charsetIn(contentType: string | undefined): string | undefined {
  return /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(contentType ?? "")?.[1];
}

/** Throws if the text is too long for a string. */
export function textIn(bytes: Buffer, { encoding, bom }: Charset): string {
  if (encoding === "utf-8") return bytes.toString("utf8", bom);
  return new TextDecoder(encoding).decode(bytes.subarray(bom));
}

function startsWith(bytes: Buffer, ...first: number[]): boolean {
  return first.every((byte, index) => bytes[index] === byte);
}

function knownEncoding(name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  try {
    return new TextDecoder(name).encoding;
  } catch {
    return undefined;
  }
}
