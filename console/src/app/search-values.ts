/** Serializes and parses the search parameters of a URL. Users may edit URLs, so invalid values are ignored. */
import { parseSearchWith, stringifySearchWith } from "@tanstack/react-router";

export type Search = Record<string, unknown>;

/**
 * Values are written without quotes: `at=20261113`, not `at=%2220261113%22`. Values that look like numbers parse as numbers;
 * `text` turns them back into strings.
 */
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
 * Whether a navigation replaces the history entry. Opening a drawer adds one: on a phone the drawer covers the page, so Back must
 * close it. `drawers` are the parameters that name the open drawer.
 */
export function isInPlace<S extends object>(before: S, change: Partial<S>, ...drawers: readonly (keyof S)[]): boolean {
  const isOpen = (search: Partial<S>) => drawers.some((name) => search[name] !== undefined);
  return isOpen(before) || !isOpen(change);
}
