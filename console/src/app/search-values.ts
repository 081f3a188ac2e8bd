/** Reads the search parameters of an address, which anybody may have typed: what is not understood is left out. */

export type Search = Record<string, unknown>;

/** The router parses what looks like a number as one: opTimes, ids and some file names do. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

export function texts<const Name extends string>(
  search: Search,
  names: readonly Name[],
): { [N in Name]?: string | undefined } {
  return Object.fromEntries(names.map((name) => [name, text(search[name])])) as { [N in Name]?: string | undefined };
}

/** 0 or more. */
export function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

export function oneOf<const Word extends string>(words: readonly Word[], value: unknown): Word | undefined {
  return words.find((word) => word === value);
}
