/**
 * Masks secrets by their value: in the output of a node of a chain, in the answers of a source. Without it, a tool that prints its
 * command line, or a server that repeats a key in an error, would write them into rows that many may read. It protects against
 * accidents only: who means to leak a secret can encode it in a way that is not recognised.
 */

export interface Mask {
  /** `unknown`, because user files are not type-checked. */
  text(input: unknown): string;
  /** Any JSON, its keys as well. */
  json(value: unknown): unknown;
  /** The body of a request or response, as it is sent. Without a secret in it, it is the same buffer. */
  bytes(body: Buffer): Buffer;
}

/** For nodes that use no secret: changes nothing. */
export const NO_MASK: Mask = { text: String, json: (value) => value, bytes: (body) => body };

const MASKED = "***";
const MASKED_BYTES = Buffer.from(MASKED);
/** A number in JSON must stay one, or the body could not be read any more. */
const MASKED_DIGITS = Buffer.from("0");
/** Shorter parts reveal little and would match everywhere. */
const PART_LENGTH_MIN = 4;
/** In base64, chance matches are more likely. */
const BASE64_LENGTH_MIN = 8;
/** A prefix of this length is masked even without the rest: the output may have been truncated inside the secret. */
const PREFIX_LENGTH = 16;

export function maskOf(secrets: Iterable<string>): Mask {
  const forms = [...new Set([...secrets].flatMap(partsOf).flatMap(formsOf))];
  if (forms.length === 0) return NO_MASK;
  const findInText = finderOf(forms.map(unitsOf));
  const findInBytes = finderOf(forms.flatMap(encodingsOf));

  function text(input: unknown): string {
    const whole = String(input);
    let masked = "";
    let from = 0;
    for (const [start, end] of findInText(unitsOf(whole))) {
      masked += whole.slice(from, start) + MASKED;
      from = end;
    }
    return from === 0 ? whole : masked + whole.slice(from);
  }

  function bytes(body: Buffer): Buffer {
    const parts: Buffer[] = [];
    let from = 0;
    for (const [start, end] of findInBytes(body)) {
      const found = body.subarray(start, end);
      parts.push(body.subarray(from, start), found.every(isDigit) ? MASKED_DIGITS : MASKED_BYTES);
      from = end;
    }
    return from === 0 ? body : Buffer.concat([...parts, body.subarray(from)]);
  }

  function json(value: unknown): unknown {
    if (typeof value === "string") return text(value);
    if (typeof value === "number") return text(value) === MASKED ? MASKED : value;
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(json);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), json(item)]));
  }

  return { text, json, bytes };
}

type Units = Uint8Array | Uint16Array;

/** Hosts are shown in lower case, and `%2f` equals `%2F`. Only ASCII, where it does not change the length. */
const LOWER = Uint8Array.from({ length: 128 }, (_, code) => (code >= 0x41 && code <= 0x5a ? code + 0x20 : code));

/** 16 bits that depend on the last four units, whatever was before them. */
const HASHES = 65_536;
const HASH_SHIFT = 4;

/**
 * Finds where forms begin and end, without overlaps, the longest at each place. A key of many lines has thousands of forms, and a
 * body may have 64 MB, so all are found in one pass: a table tells whether any form begins with the last four units. It takes
 * a fifth of a second for 64 MB.
 */
function finderOf(forms: readonly Units[]): (units: Units) => [number, number][] {
  const byHash = new Map<number, Units[]>();
  const isStart = new Uint8Array(HASHES);
  for (const form of forms.map((units) => units.map(folded))) {
    if (form.length < PART_LENGTH_MIN) continue;
    const hash = [...form.subarray(0, PART_LENGTH_MIN)].reduce(nextHash, 0);
    isStart[hash] = 1;
    byHash.set(hash, [...(byHash.get(hash) ?? []), form]);
  }

  function lengthAt(units: Units, start: number, hash: number): number {
    let longest = 0;
    for (const form of byHash.get(hash)!) {
      let same = 0;
      while (same < form.length && form[same] === folded(units[start + same] ?? -1)) same += 1;
      if (same === form.length || same >= PREFIX_LENGTH) longest = Math.max(longest, same);
    }
    return longest;
  }

  return (units) => {
    const found: [number, number][] = [];
    let from = 0;
    let hash = 0;
    for (let at = 0; at < units.length; at += 1) {
      hash = nextHash(hash, folded(units[at]!));
      if (isStart[hash] === 0 || at + 1 - PART_LENGTH_MIN < from) continue;
      const start = at + 1 - PART_LENGTH_MIN;
      const length = lengthAt(units, start, hash);
      if (length === 0) continue;
      from = start + length;
      found.push([start, from]);
      at = from - 1;
    }
    return found;
  };
}

function folded(unit: number): number {
  return unit >= 0 && unit < 128 ? LOWER[unit]! : unit;
}

function nextHash(hash: number, unit: number): number {
  return ((hash << HASH_SHIFT) ^ unit) & (HASHES - 1);
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function unitsOf(text: string): Uint16Array {
  const units = new Uint16Array(text.length);
  for (let index = 0; index < text.length; index += 1) units[index] = text.charCodeAt(index);
  return units;
}

function encodingsOf(form: string): Buffer[] {
  return [Buffer.from(form), Buffer.from(form, "latin1")];
}

/** The secret, its lines (output comes line by line) and, if it is JSON such as a service account, its strings. */
function partsOf(secret: string): string[] {
  const texts = [secret, ...textsIn(parsed(secret))];
  const lines = texts.flatMap((text) => text.split(/\r?\n/)).map((line) => line.trim());
  return [secret, ...[...texts, secret.trim(), ...lines].filter(isWorthMasking)];
}

/** A string in JSON may contain a lone surrogate, which cannot be encoded for a URL. */
function isWorthMasking(part: string): boolean {
  return part.length >= PART_LENGTH_MIN && /[\p{L}\p{N}]/u.test(part) && part.isWellFormed();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** The text itself, and its forms in JSON, in JSON within JSON, in HTML and XML, in a URL, in base64 and in hex. */
function formsOf(part: string): string[] {
  const json = escaped(part);
  const inJson = [json, asPhp(json), asPython(json), escaped(json)];
  return [
    part,
    ...inJson,
    ...markupForms(part),
    ...urlForms(part),
    ...base64Forms(part),
    Buffer.from(part).toString("hex"),
  ];
}

/** Quotes need no escape in text, and the apostrophe has several names. */
function markupForms(part: string): string[] {
  const text = part.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return [text, text.replaceAll('"', "&quot;")].flatMap((quoted) =>
    ["'", "&#39;", "&#x27;", "&apos;"].map((apostrophe) => quoted.replaceAll("'", apostrophe)),
  );
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function asPhp(json: string): string {
  return json.replaceAll("/", "\\/");
}

function asPython(json: string): string {
  return json.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Encoded by the node, or by the URL parser: each part of a URL has its own rules. */
function urlForms(part: string): string[] {
  const url = new URL("http://x");
  url.password = part;
  const forms = [
    encodeURIComponent(part),
    new URLSearchParams({ "": part }).toString().slice("=".length),
    encodeURI(part),
    url.password,
    new URL(`http://x/${part}`).href.slice("http://x/".length),
    new URL(`http://x/?${part}`).href.slice("http://x/?".length),
  ];
  return forms.filter(isWorthMasking); // A path of dots becomes empty.
}

/** The encoding depends on the offset modulo 3. Characters that also encode neighbouring bytes are left out. */
function base64Forms(part: string): string[] {
  const bytes = Buffer.from(part);
  return [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    const shared = (before + bytes.length) % 3 === 0 ? 0 : 1;
    const own = whole.slice(before === 0 ? 0 : before + 1, whole.length - shared);
    return own.length < BASE64_LENGTH_MIN ? [] : [own, own.replaceAll("+", "-").replaceAll("/", "_")];
  });
}
