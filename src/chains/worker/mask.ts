/**
 * Masks secrets in the output of a node: log, progress, errors, artifact. Without it, a tool that prints its command line, or a
 * server that repeats a header in an error, would write them into rows that many may read. It protects against accidents only:
 * a node that means to leak a secret can encode it in a way that is not recognised.
 */

export interface Mask {
  /** `unknown`, because user files are not type-checked. */
  text(input: unknown): string;
  /** Any JSON, its keys as well. */
  json(value: unknown): unknown;
}

/** For nodes that use no secret: changes nothing. */
export const NO_MASK: Mask = { text: String, json: (value) => value };

const MASKED = "***";
/** Shorter parts reveal little and would match everywhere. */
const PART_LENGTH_MIN = 4;
/** In base64, chance matches are more likely. */
const BASE64_LENGTH_MIN = 8;
/** A prefix of this length is masked even without the rest: the output may have been truncated inside the secret. */
const PREFIX_LENGTH = 16;

export function maskOf(secrets: Iterable<string>): Mask {
  const forms = new Set([...secrets].flatMap(partsOf).flatMap(formsOf).map(inLowerCase));
  if (forms.size === 0) return NO_MASK;
  // A key of many lines has thousands of forms. Indexed by prefix, they cost one pass over the text.
  const byPrefix = new Map<string, string[]>();
  for (const form of forms) {
    const alike = byPrefix.get(prefixAt(form, 0));
    if (alike) alike.push(form);
    else byPrefix.set(prefixAt(form, 0), [form]);
  }

  function lengthAt(searched: string, at: number): number {
    let longest = 0;
    for (const form of byPrefix.get(prefixAt(searched, at)) ?? []) {
      let same = PART_LENGTH_MIN;
      while (same < form.length && form[same] === searched[at + same]) same += 1;
      if (same === form.length || same >= PREFIX_LENGTH) longest = Math.max(longest, same);
    }
    return longest;
  }

  function text(input: unknown): string {
    const whole = String(input);
    const searched = inLowerCase(whole);
    let masked = "";
    let from = 0;
    for (let at = 0; at + PART_LENGTH_MIN <= searched.length; ) {
      const length = lengthAt(searched, at);
      if (length > 0) {
        masked += whole.slice(from, at) + MASKED;
        from = at + length;
      }
      at += length || 1;
    }
    return masked + whole.slice(from);
  }

  function json(value: unknown): unknown {
    if (typeof value === "string") return text(value);
    if (typeof value === "number") return text(value) === MASKED ? MASKED : value;
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(json);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), json(item)]));
  }

  return { text, json };
}

function prefixAt(text: string, at: number): string {
  return text.slice(at, at + PART_LENGTH_MIN);
}

/** Hosts are shown in lower case, and `%2f` equals `%2F`. Only ASCII, where it does not change the length. */
function inLowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
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

/** The text itself, and its forms in JSON, in JSON within JSON, in a URL and in base64. */
function formsOf(part: string): string[] {
  const json = escaped(part);
  return [part, json, asPhp(json), asPython(json), escaped(json), ...urlForms(part), ...base64Forms(part)];
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
