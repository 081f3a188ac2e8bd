/** "Did you mean": finds the known name (a setting, a command, a route, a stage) that is most similar to an unknown one. */

/** Words that differ by more edits are unrelated. */
const MAX_EDITS = 3;
/** Longer than any name. Longer input is ignored. */
const WORD_LENGTH_MAX = 256;
/** The steps of one search: a few milliseconds. Names may be chosen to be expensive, and nothing else runs meanwhile. */
const STEPS_MAX = 250_000;

/**
 * The candidate with the fewest edits from `word`, if any is similar; the first of equally similar ones. Of more candidates
 * than can be compared in STEPS_MAX, the first are.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > WORD_LENGTH_MAX) return undefined;
  const wanted = word.toLowerCase();
  const steps = { left: STEPS_MAX };
  let best: string | undefined;
  let limit = Math.min(MAX_EDITS, Math.ceil(word.length / 4));
  for (const candidate of candidates) {
    steps.left -= 1;
    if (Math.abs(candidate.length - word.length) <= limit) {
      const edits = editsWithin(limit, wanted, candidate.toLowerCase(), steps);
      if (edits !== undefined) {
        best = candidate;
        limit = edits - 1;
      }
    }
    if (limit < 0 || steps.left <= 0) break;
  }
  return best;
}

/** " Did you mean `port`?", to append to a sentence, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const candidate = nearest(word, candidates);
  return candidate === undefined ? "" : ` Did you mean \`${candidate}\`?`;
}

/**
 * Counts insertions, deletions, replacements and swaps of neighbours: `prot` is one edit from `port`, not two. Undefined if
 * there are more than `limit`, or no steps are left.
 */
function editsWithin(limit: number, a: string, b: string, steps: { left: number }): number | undefined {
  const start = commonPrefix(a, b);
  // Only cells at most `limit` columns from the diagonal can count: place 1 of a row is the column `row - limit`, and the
  // places before the first and after the last stay infinite.
  const width = 2 * limit + 1;
  const emptyRow = () => Array.from({ length: width + 2 }, () => Number.POSITIVE_INFINITY);
  let beforePrevious = emptyRow();
  let previous = emptyRow();
  let current = emptyRow();
  for (let edits = 0; edits <= limit; edits += 1) previous[1 + limit + edits] = edits;
  for (let inA = start; inA < a.length; inA += 1) {
    let fewest = Number.POSITIVE_INFINITY;
    for (let place = 1; place <= width; place += 1) {
      const inB = inA + place - 1 - limit;
      const isSame = a.charCodeAt(inA) === b.charCodeAt(inB);
      let edits = Math.min(
        at(previous, place + 1) + 1,
        at(current, place - 1) + 1,
        at(previous, place) + (isSame ? 0 : 1),
      );
      if (!isSame && a.charCodeAt(inA) === b.charCodeAt(inB - 1) && a.charCodeAt(inA - 1) === b.charCodeAt(inB)) {
        edits = Math.min(edits, at(beforePrevious, place) + 1);
      }
      current[place] = edits;
      fewest = Math.min(fewest, edits);
    }
    steps.left -= width;
    if (fewest > limit || steps.left <= 0) return undefined;
    [beforePrevious, previous, current] = [previous, current, beforePrevious];
  }
  const edits = at(previous, 1 + limit + b.length - a.length);
  return edits <= limit ? edits : undefined;
}

function commonPrefix(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
}

function at(row: readonly number[], place: number): number {
  return row[place] ?? Number.POSITIVE_INFINITY;
}
