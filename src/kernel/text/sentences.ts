/** Parts of the sentences that people read: counts with their noun, long lists, text from outside on one line. */

/** `1 node`, `2 nodes`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

/** `a, b and 3 more`. */
export function listed(items: readonly string[], shownMax: number): string {
  const shown = items.slice(0, shownMax).join(", ");
  return items.length > shownMax ? `${shown} and ${items.length - shownMax} more` : shown;
}

/** The beginning of a text on one line, in characters that Postgres stores and a terminal prints. */
export function oneLine(text: string, lengthMax: number): string {
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, " ").trim();
  return line.slice(0, lengthMax).toWellFormed();
}
