/**
 * The last filters of each page of the menu, in this tab: the menu leads back to them. What is open, such as a drawer, is left out,
 * since it would cover what the user comes back for.
 */
import type { Search } from "./search-values.ts";

const KEY = "millrace.searches";
/** Parameters of pages of the menu that name what is open, or a form. */
const OPENED: ReadonlySet<string> = new Set(["row", "at", "until", "file", "shard"]);

/** By path. */
type Searches = Readonly<Record<string, Search>>;

function read(): Searches {
  try {
    return (JSON.parse(sessionStorage.getItem(KEY) ?? "{}") ?? {}) as Searches;
  } catch {
    return {}; // Not written by this page.
  }
}

export function lastSearchOf(path: string): Search {
  return read()[path] ?? {};
}

export function keepSearch(path: string, search: Search): void {
  if (search["tab"] === "new") return; // A form, which has a draft instead.
  const kept = Object.entries(search).filter(([name, value]) => value !== undefined && !OPENED.has(name));
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ ...read(), [path]: Object.fromEntries(kept) }));
  } catch {
    // The browser has no room for it.
  }
}

/** For the next user of this tab. */
export function forgetSearches(): void {
  sessionStorage.removeItem(KEY);
}
