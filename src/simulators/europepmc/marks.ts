/**
 * `cursorMark` as Solr has it: the sort values of the last article of a page, in base64. It is good for ever and for any number of
 * requests, and what changes before it does not move what follows.
 */

export interface Mark {
  /** The value that articles are sorted by. */
  value: number;
  /** What decides between equal values. */
  ordinal: number;
}

const HEAD = { relevance: Buffer.from([0x02, 0x82, 0x08]), field: Buffer.from([0x02, 0x82, 0x06]) } as const;
/** What the text of the real marks begins with is longer than this. */
const ORDINAL_START = 50_000_000;

export function writeMark({ value, ordinal }: Mark, sorted: boolean): string {
  const number = Buffer.alloc(4);
  if (sorted) number.writeInt32BE(value);
  else number.writeFloatBE(value);
  const text = String(ORDINAL_START + ordinal);
  const length = Buffer.from([0x20 + text.length]);
  return Buffer.concat([sorted ? HEAD.field : HEAD.relevance, number, length, Buffer.from(text)]).toString("base64");
}

/** Undefined for what is no mark of this order. */
export function readMark(text: string, sorted: boolean): Mark | undefined {
  const bytes = Buffer.from(text, "base64");
  const head = sorted ? HEAD.field : HEAD.relevance;
  const ordinal = Number(bytes.subarray(8).toString()) - ORDINAL_START;
  if (!bytes.subarray(0, 3).equals(head) || !Number.isInteger(ordinal) || ordinal < 0) return undefined;
  return { value: sorted ? bytes.readInt32BE(3) : bytes.readFloatBE(3), ordinal };
}
