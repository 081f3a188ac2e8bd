/**
 * Caches an answer that is public and expensive to make: one is made for all callers that ask while it is being made and for
 * a short time after, so that the number of callers does not decide the cost. A failure is cached too.
 */

/** `now` is a monotonic clock in milliseconds. */
export function cachedFor<T>(keepMs: number, make: () => Promise<T>, now = () => performance.now()): () => Promise<T> {
  let kept: Promise<T> | undefined;
  let keptUntilMs = Number.POSITIVE_INFINITY;
  return () => {
    if (kept && now() < keptUntilMs) return kept;
    keptUntilMs = Number.POSITIVE_INFINITY; // While it is being made.
    const made = make();
    kept = made;
    const keep = () => {
      keptUntilMs = now() + keepMs;
    };
    made.then(keep, keep);
    return made;
  };
}
