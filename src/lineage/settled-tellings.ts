/**
 * Which tellings the graph says already, as far as this process remembers: a guess, which the transaction looks into. A wrong
 * one costs a transaction, so a telling for which it was wrong once is not guessed again for as long as that is remembered.
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
