/** "Did you mean": finds the known name (a setting, a command, a route, a stage) that is most similar to an unknown one. */

/** Words that differ by more edits are unrelated. */
const MAX_EDITS = 3;
/** Longer than any name. The comparison takes quadratic time, so longer input is ignored. */
const WORD_LENGTH_MAX = 256;

/** The candidate with the fewest edits from `word`, if any is similar; the first of equally similar ones. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > WORD_LENGTH_MAX) return undefined;
  let best: string | undefined;
  let limit = Math.min(MAX_EDITS, Math.ceil(word.length / 4));
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) > limit) continue;
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (edits > limit) continue;
    best = candidate;
    limit = edits - 1;
  }
  return best;
}

/** " Did you mean `port`?", to append to a sentence, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const candidate = nearest(word, candidates);
  return candidate === undefined ? "" : ` Did you mean \`${candidate}\`?`;
}

/** Counts insertions, deletions, replacements and swaps of neighbours: `prot` is one edit from `port`, not two. */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = at(previous, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let edits = Math.min(at(previous, column) + 1, at(current, column - 1) + 1, replaced);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        edits = Math.min(edits, at(beforePrevious, column - 2) + 1);
      }
      current.push(edits);
    }
    beforePrevious = previous;
    previous = current;
  }
  return at(previous, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
