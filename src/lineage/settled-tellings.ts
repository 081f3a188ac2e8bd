/**
 * Which tellings need no work, because the graph says already what they say, as far as this process remembers. The transaction
 * checks it. To be wrong costs a transaction, so a telling for which it was wrong once does not count as settled again for as
 * long as that is remembered.
 */
export interface SettledTellings {
  /** Whether all of them are worth the try. */
  areSettled(tellings: readonly string[]): boolean;
  wereApplied(tellings: readonly string[]): void;
  wereWrong(tellings: readonly string[]): void;
}

const REMEMBERED_MAX = 100_000;

export function createSettledTellings(): SettledTellings {
  const settled = new Map<string, boolean>();

  function remember(telling: string, isSettled: boolean): void {
    if (settled.size >= REMEMBERED_MAX && !settled.has(telling)) settled.clear();
    settled.set(telling, isSettled);
  }

  return {
    areSettled: (tellings) => tellings.every((telling) => settled.get(telling) === true),
    wereApplied(tellings) {
      for (const telling of tellings) if (!settled.has(telling)) remember(telling, true);
    },
    wereWrong(tellings) {
      for (const telling of tellings) remember(telling, false);
    },
  };
}
