/** Keeps a promise in a set until it settles, so that a stop can wait for all of them. */
export function track(set: Set<Promise<void>>, promise: Promise<void>): Promise<void> {
  set.add(promise);
  const remove = () => void set.delete(promise);
  void promise.then(remove, remove);
  return promise;
}
