/** How deep JSON is nested: `JSON.stringify` and Postgres both give up at some depth, so each reader sets a limit. */

/**
 * Whether a value, as JSON has it, is nested deeper than so many levels. Asked of every body: a list is walked by its
 * length, which takes a tenth of the time that its names take, and nothing is asked of what has no levels.
 */
export function isDeeper(value: unknown, levels: number): boolean {
  if (value === null || typeof value !== "object") return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const item: unknown = value[index];
      if (typeof item === "object" && isDeeper(item, levels - 1)) return true;
    }
    return false;
  }
  for (const name in value) {
    const item = (value as Record<string, unknown>)[name];
    if (typeof item === "object" && isDeeper(item, levels - 1)) return true;
  }
  return false;
}
