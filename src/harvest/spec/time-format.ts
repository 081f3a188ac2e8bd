/** Instants as text: `yyyy-MM-dd` and other patterns in a time zone, `iso`, `epochMs`, `epochSeconds`. */

const TOKENS = /yyyy|MM|dd|HH|mm|ss|SSS|'[^']*'|[^']/g;
/** Letters outside quotes are tokens, so that a misspelt one is not sent to a source as it is. */
const LITERAL = /^[^A-Za-z]$/;
const NAMED: Readonly<Record<string, (ms: number) => string>> = {
  iso: (ms) => new Date(ms).toISOString().replace(".000Z", "Z"),
  epochMs: (ms) => String(ms),
  epochSeconds: (ms) => String(Math.floor(ms / 1_000)),
};
const PARTS = { yyyy: "year", MM: "month", dd: "day", HH: "hour", mm: "minute", ss: "second" } as const;

/** The parts that units shorter than this need. */
const PARTS_FROM: readonly [part: string, unitMs: number][] = [
  ["MM", Number.POSITIVE_INFINITY],
  ["dd", Number.POSITIVE_INFINITY],
  ["HH", 86_400_000],
  ["mm", 3_600_000],
  ["ss", 60_000],
];

const CLOCKS_MAX = 1_000;
/** Formats of the clock of each time zone; making one costs 30 us. */
const clocks = new Map<string, Intl.DateTimeFormat>();

export function isTimeFormat(format: string): boolean {
  return writerOf(format) !== undefined;
}

/** What the format would need to tell neighbouring units apart: `yyyy-mm-dd`, with minutes for months, lacks MM. */
export function missingParts(format: string, unitMs: number): string[] {
  if (Object.hasOwn(NAMED, format)) return [];
  const tokens: readonly string[] = format.match(TOKENS) ?? [];
  return PARTS_FROM.filter(([part, fromMs]) => unitMs < fromMs && !tokens.includes(part)).map(([part]) => part);
}

/** Throws a RangeError for what is no format or no time zone. */
export function formatTime(ms: number, format: string, timeZone: string): string {
  const write = writerOf(format);
  if (!write) throw new RangeError(`there is no time format ${format}`);
  return write(ms, timeZone);
}

function writerOf(format: string): ((ms: number, timeZone: string) => string) | undefined {
  if (Object.hasOwn(NAMED, format)) return NAMED[format];
  const tokens: readonly string[] = format.match(TOKENS) ?? [];
  const isComplete = tokens.join("") === format;
  const isKnown = (token: string) =>
    Object.hasOwn(PARTS, token) || token === "SSS" || token.startsWith("'") || LITERAL.test(token);
  if (!isComplete || !tokens.includes("yyyy") || !tokens.every(isKnown)) return undefined;
  return (ms, timeZone) => {
    const parts = partsOf(ms, timeZone);
    return tokens.map((token) => textOf(token, ms, parts)).join("");
  };
}

function textOf(token: string, ms: number, parts: Readonly<Record<string, string>>): string {
  if (Object.hasOwn(PARTS, token)) {
    return parts[PARTS[token as keyof typeof PARTS]]!.padStart(token.length, "0");
  }
  if (token === "SSS") return String(new Date(ms).getUTCMilliseconds()).padStart(3, "0");
  return token.startsWith("'") ? token.slice(1, -1) || "'" : token;
}

function partsOf(ms: number, timeZone: string): Record<string, string> {
  let clock = clocks.get(timeZone);
  if (!clock) {
    clock = new Intl.DateTimeFormat("en-US", {
      calendar: "gregory",
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
    if (clocks.size >= CLOCKS_MAX) clocks.clear();
    clocks.set(timeZone, clock);
  }
  return Object.fromEntries(clock.formatToParts(ms).map(({ type, value }) => [type, value]));
}
