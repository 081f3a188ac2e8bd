/** What a setting's text may be: how it is read, and how a person is told what would have been accepted. */
import { didYouMean } from "../nearest.ts";

export interface Kind<Value> {
  /** Ends the sentence "Accepted: ...". */
  readonly accepts: string;
  /** Stands for the value in `--port <number>`. */
  readonly placeholder: string;
  /** The value, or undefined when the text is not accepted. */
  parse(text: string): Value | undefined;
  /** " Did you mean ...?" for a text that was not accepted, where there is something to choose from. */
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

/** No other spellings: a switch that opens something up should not be turned on by a guess. */
export const trueOrFalse: Kind<boolean> = {
  accepts: "true or false",
  placeholder: "true|false",
  parse: (text) => (text === "true" || text === "false" ? text === "true" : undefined),
  hint: (text) => didYouMean(text, ["true", "false"]),
};

/** A comma list, each word at most once in the result. `none` says whether the list may be empty. */
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
      const stranger = listItems(text).find((item) => !isWord(item));
      return stranger === undefined ? "" : didYouMean(stranger, words);
    },
  };
}

function listItems(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** Text of a given form, taken as it is. */
export function matching(accepts: string, placeholder: string, pattern: RegExp): Kind<string> {
  return { accepts, placeholder, parse: (text) => (pattern.test(text) ? text : undefined) };
}

export function url(protocols: readonly string[], example: string): Kind<string> {
  return {
    accepts: `a URL such as ${example}`,
    placeholder: "url",
    parse: (text) => (URL.canParse(text) && protocols.includes(new URL(text).protocol) ? text : undefined),
  };
}
