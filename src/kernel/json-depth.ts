/** How deep JSON is nested: `JSON.stringify` and Postgres both give up at some depth, so each reader sets a limit. */

/** Whether a value is nested deeper than so many levels. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (value === null || typeof value !== "object") return false;
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1));
}
