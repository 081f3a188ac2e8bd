/** The parts of a receiver's address that people know it by. */

/** The scheme is the same for nearly all, and a bare `/` says nothing. */
export function partsOfUrl(url: string): { host: string; path: string } {
  if (!URL.canParse(url)) return { host: url, path: "" };
  const { host, pathname, search } = new URL(url);
  return { host, path: pathname === "/" && search === "" ? "" : pathname + search };
}
