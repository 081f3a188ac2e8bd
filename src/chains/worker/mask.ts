/**
 * Cuts secrets out of what a node says: its log, its progress, its errors, its artifact. A tool that prints its command
 * line, or a server that repeats a header in its refusal, would else write them into rows that many may read. It is a net
 * for what happens by mistake: a node that means to give a secret away can write it in a way that nobody expects.
 */

export interface Mask {
  /** Whatever a node says, as text: what comes from a user's own file knows no types. */
  text(said: unknown): string;
  /** Any JSON, its keys as well. */
  json(value: unknown): unknown;
}

/** For nodes that use no secret: what they say is as they say it. */
export const NO_MASK: Mask = { text: String, json: (value) => value };

const CUT = "***";
/** What is shorter tells nothing, and would be found everywhere. */
const PART_LENGTH_MIN = 4;
/** In base64, letters that are found by chance are more likely. */
const BASE64_LENGTH_MIN = 8;
/** So much of the beginning is cut out without the rest: what a node says may have been cut off in the middle. */
const BEGINNING_LENGTH = 16;

export function maskOf(secrets: Iterable<string>): Mask {
  const forms = new Set([...secrets].flatMap(partsOf).flatMap(formsOf).map(inLowerCase));
  if (forms.size === 0) return NO_MASK;
  // A key of many lines has thousands of forms. Found by how they begin, they cost a text one pass, however many there are.
  const byBeginning = new Map<string, string[]>();
  for (const form of forms) {
    const alike = byBeginning.get(beginningAt(form, 0));
    if (alike) alike.push(form);
    else byBeginning.set(beginningAt(form, 0), [form]);
  }

  function lengthAt(searched: string, at: number): number {
    let longest = 0;
    for (const form of byBeginning.get(beginningAt(searched, at)) ?? []) {
      let same = PART_LENGTH_MIN;
      while (same < form.length && form[same] === searched[at + same]) same += 1;
      if (same === form.length || same >= BEGINNING_LENGTH) longest = Math.max(longest, same);
    }
    return longest;
  }

  function text(said: unknown): string {
    const whole = String(said);
    const searched = inLowerCase(whole);
    let told = "";
    let from = 0;
    for (let at = 0; at + PART_LENGTH_MIN <= searched.length; ) {
      const length = lengthAt(searched, at);
      if (length > 0) {
        told += whole.slice(from, at) + CUT;
        from = at + length;
      }
      at += length || 1;
    }
    return told + whole.slice(from);
  }

  function json(value: unknown): unknown {
    if (typeof value === "string") return text(value);
    if (typeof value === "number") return text(value) === CUT ? CUT : value;
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(json);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), json(item)]));
  }

  return { text, json };
}

function beginningAt(text: string, at: number): string {
  return text.slice(at, at + PART_LENGTH_MIN);
}

/** Hosts are told in lower case, and `%2f` is `%2F`. Only ASCII, where it changes no length. */
function inLowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The whole; each of its lines, since output comes line by line; and each text in it, if it is JSON such as a service account. */
function partsOf(secret: string): string[] {
  const texts = [secret, ...textsIn(parsed(secret))];
  const lines = texts.flatMap((text) => text.split(/\r?\n/)).map((line) => line.trim());
  return [secret, ...[...texts, secret.trim(), ...lines].filter(tellsSomething)];
}

/** A text in JSON may hold half a character, which has no form in a URL. */
function tellsSomething(part: string): boolean {
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

/** As it is, and as it is written in JSON, in JSON within JSON, in a URL and in base64. */
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

/** A value that someone has encoded, and what becomes of one that nobody has: each place in a URL has rules of its own. */
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
  return forms.filter(tellsSomething); // A path of dots becomes none.
}

/** Which letters stand for it depends on what stands before it; those that it shares with its neighbours are left. */
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
