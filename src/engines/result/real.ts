/** Converts numbers of four bytes. */

/** The shortest decimal that is this number: 0.1 and not 0.10000000149011612, which is what its four bytes are as eight. */
export function shortestReal(value: number): number {
  for (const digits of [6, 7, 8]) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === value) return shorter;
  }
  return Number(value.toPrecision(9));
}
