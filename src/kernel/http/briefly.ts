/**
 * Answers that everyone may ask for, and that cost something to make: one is made for all who ask while it is under way and
 * shortly after, so that the callers' number does not decide what the server spends on them. A failure is kept as well.
 */

/** `now` counts milliseconds and never goes back. */
export function briefly<T>(keepMs: number, make: () => Promise<T>, now = () => performance.now()): () => Promise<T> {
  let kept: Promise<T> | undefined;
  let keptUntilMs = Number.POSITIVE_INFINITY;
  return () => {
    if (kept && now() < keptUntilMs) return kept;
    keptUntilMs = Number.POSITIVE_INFINITY; // While it is under way.
    const made = make();
    kept = made;
    const keep = () => {
      keptUntilMs = now() + keepMs;
    };
    made.then(keep, keep);
    return made;
  };
}
