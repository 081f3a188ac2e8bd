/**
 * Cuts secrets out of what a node says: its log, its progress, its errors, its artifact. A tool that prints its command
 * line, or a server that repeats a header in its refusal, would else write them into rows that many may read.
 */

export interface Mask {
  text(text: string): string;
  /** Any JSON, its keys as well. */
  json(value: unknown): unknown;
}

/** For nodes that use no secret: what they say is as they say it. */
export const NO_MASK: Mask = { text: (text) => text, json: (value) => value };

const CUT = "***";
/** A line of a key is cut out by itself, since output comes line by line. `}` or `-----` alone tell nothing. */
const LINE_LENGTH_MIN = 8;

export function maskOf(secrets: Iterable<string>): Mask {
  const forms = [...new Set([...secrets].flatMap(formsOf))].toSorted((a, b) => b.length - a.length);
  if (forms.length === 0) return NO_MASK;
  const text = (said: string) => forms.reduce((rest, form) => rest.replaceAll(form, CUT), said);
  const json = (value: unknown): unknown => {
    if (typeof value === "string") return text(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(json);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), json(item)]));
  };
  return { text, json };
}

/** As it is, as it stands in a URL and in JSON, and each of its lines. */
function formsOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/).filter((line) => line.length >= LINE_LENGTH_MIN);
  return [secret, ...lines].flatMap((part) => [part, encodeURIComponent(part), JSON.stringify(part).slice(1, -1)]);
}
