/** A rate with three digits: `2.5`, `0.333`, `5000`. */
export function rateText(rate: number): string {
  return String(Number(rate.toPrecision(3)));
}
