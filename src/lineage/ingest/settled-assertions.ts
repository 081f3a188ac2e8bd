/**
 * Caches which assertions are settled: the graph agrees with them, so their next event need not be applied. The transaction
 * checks it. To be wrong costs a transaction, so an assertion for which it was wrong once does not count as settled again for as
 * long as that is remembered.
 */
export interface SettledAssertions {
  /** Whether all of them are worth the try. */
  areSettled(assertions: readonly string[]): boolean;
  wereApplied(assertions: readonly string[]): void;
  wereWrong(assertions: readonly string[]): void;
}

const REMEMBERED_MAX = 100_000;

export function createSettledAssertions(): SettledAssertions {
  const settled = new Map<string, boolean>();

  function remember(assertion: string, isSettled: boolean): void {
    if (settled.size >= REMEMBERED_MAX && !settled.has(assertion)) settled.clear();
    settled.set(assertion, isSettled);
  }

  return {
    areSettled: (assertions) => assertions.every((assertion) => settled.get(assertion) === true),
    wereApplied(assertions) {
      for (const assertion of assertions) if (!settled.has(assertion)) remember(assertion, true);
    },
    wereWrong(assertions) {
      for (const assertion of assertions) remember(assertion, false);
    },
  };
}
