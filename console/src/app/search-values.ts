/** Writes the search parameters of an address, and reads them: anybody may have typed them, so what is not understood is left out. */
import { parseSearchWith, stringifySearchWith } from "@tanstack/react-router";

export type Search = Record<string, unknown>;

/** Values are written plainly: `at=20261113`, not `at=%2220261113%22`. What looks like a number is read as one; `text` undoes that. */
export const stringifySearch = stringifySearchWith(String);
export const parseSearch = parseSearchWith((value) => value);

/** OpTimes, ids and some file names look like numbers. */
export function text(value: unknown): string | undefined {
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
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

/**
 * Whether a change of the address takes the place of the one before. Opening a drawer does not: on a phone it covers the page, so the
 * way back leads to the page. `drawers` are the parameters that name what is open.
 */
export function isInPlace<S extends object>(before: S, change: Partial<S>, ...drawers: readonly (keyof S)[]): boolean {
  const isOpen = (search: Partial<S>) => drawers.some((name) => search[name] !== undefined);
  return isOpen(before) || !isOpen(change);
}
