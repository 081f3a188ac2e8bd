/** The types of settings: how to parse their text, and how to describe what is accepted. */
import { isIP } from "node:net";
import { didYouMean } from "../nearest.ts";

export interface Kind<Value> {
  /** Ends the sentence "Accepted: ...". */
  readonly accepts: string;
  /** The placeholder in `--port <number>`. */
  readonly placeholder: string;
  /** The value, or undefined when the text is not accepted. */
  parse(text: string): Value | undefined;
  /** " Did you mean ...?" for a text that is close to an accepted one. */
  hint?(text: string): string;
}

export function wholeNumber({ min, max }: { min: number; max: number }): Kind<number> {
  return {
    accepts: `a whole number from ${min} to ${max}`,
    placeholder: "number",
    parse(text) {
      const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
      return value >= min && value <= max ? value : undefined;
    },
  };
}

export function oneOf<Word extends string>(words: readonly Word[]): Kind<Word> {
  return {
    accepts: `one of ${words.join(", ")}`,
    placeholder: "word",
    parse: (text) => words.find((word) => word === text),
    hint: (text) => didYouMean(text, words),
  };
}

/** No other spellings: a switch that grants access must not be turned on by accident. */
export const trueOrFalse: Kind<boolean> = {
  accepts: "true or false",
  placeholder: "true|false",
  parse: (text) => (text === "true" || text === "false" ? text === "true" : undefined),
  hint: (text) => didYouMean(text, ["true", "false"]),
};

/** A comma-separated list, without duplicates. `none`: the list may be empty. */
export function someOf<Word extends string>(
  words: readonly Word[],
  { none }: { none: boolean },
): Kind<readonly Word[]> {
  const isWord = (item: string): item is Word => (words as readonly string[]).includes(item);
  return {
    accepts: `a comma list of ${words.join(", ")}`,
    placeholder: "list",
    parse(text) {
      const items = listItems(text);
      return items.every(isWord) && (none || items.length > 0) ? [...new Set(items)] : undefined;
    },
    hint(text) {
      const unknown = listItems(text).find((item) => !isWord(item));
      return unknown === undefined ? "" : didYouMean(unknown, words);
    },
  };
}

function listItems(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** A comma-separated list of IP addresses and networks; it may be empty. */
export const networks: Kind<readonly string[]> = {
  accepts: "a comma list of IP addresses and networks, such as 127.0.0.1,10.0.0.0/8",
  placeholder: "list",
  parse(text) {
    const items = listItems(text);
    return items.every(isNetwork) ? items : undefined;
  },
};

function isNetwork(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  if (most === -1 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most);
}

/** A comma-separated list of hosts with their port; it may be empty. */
export const hostPorts: Kind<readonly string[]> = {
  accepts: "a comma list of hosts with their port, such as localhost:8080,10.0.0.7:443",
  placeholder: "list",
  parse(text) {
    const items = listItems(text).map((item) => item.toLowerCase());
    return items.every(isHostPort) ? items : undefined;
  },
};

/** `host:port`; an IPv6 address is in brackets. */
function isHostPort(text: string): boolean {
  return /^(\[[\da-f:.]+\]|[^\s:/@[\]]+):\d{1,5}$/.test(text) && URL.canParse(`http://${text}`);
}

/** Text that matches a pattern. */
export function matching(accepts: string, placeholder: string, pattern: RegExp): Kind<string> {
  return { accepts, placeholder, parse: (text) => (pattern.test(text) ? text : undefined) };
}

export const path = matching("a path", "path", /^.{1,4096}$/);

export function url(protocols: readonly string[], example: string): Kind<string> {
  return {
    accepts: `a URL such as ${example}`,
    placeholder: "url",
    parse: (text) => (URL.canParse(text) && protocols.includes(new URL(text).protocol) ? text : undefined),
  };
}
