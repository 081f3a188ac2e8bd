/** Commits beside fetches: at most one page is being committed while the next one is fetched. */

export function createCommits() {
  let committing: Promise<void> = Promise.resolve();
  return {
    start(commit: Promise<void>): void {
      committing = commit;
      commit.catch(() => {}); // Whoever awaits it next throws.
    },
    done: () => committing,
    /** Throws as soon as the commit fails: what is being fetched is then of no use. */
    async whileCommitting<T>(fetching: Promise<T>): Promise<T> {
      fetching.catch(() => {});
      await Promise.race([committing.then(() => fetching), fetching]);
      return fetching;
    },
  };
}
