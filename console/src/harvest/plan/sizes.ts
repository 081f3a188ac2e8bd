/** Sizes, parts and divisions of slices as text. */

import type { Division, Estimate, LadderStep, Part, PartRange } from "../api.ts";
import type { planWords } from "../plan-words.ts";

type Words = (typeof planWords)["en"];
type Shown = (count: number) => string;

/** `about 12,000`; what the source announced is exact. */
export function estimateText(text: Words, number: Shown, estimate: Estimate | null): string {
  if (estimate === null) return "";
  return estimate.basis === "TOTAL" ? number(estimate.records) : text.about(number(estimate.records));
}

/** `edat 2026-01-01 – 2026-03-31, type book`. */
export function partText(text: Words, part: Part): string {
  return Object.entries(part)
    .map(
      ([name, range]) =>
        `${name === "pages" ? text.pagesPart : name === "quarantined" ? text.quarantined : name} ${rangeText(text, range)}`,
    )
    .join(", ");
}

function rangeText(text: Words, range: PartRange): string {
  if ("value" in range) return range.value;
  if ("values" in range) return range.values.join(", ");
  if ("rest" in range) return range.rest === "" ? text.otherValues : `${range.rest} + ${text.otherValues}`;
  return range.from === range.until ? String(range.from) : `${range.from} – ${range.until}`;
}

/** `about 12,000 records, by earlier windows`. */
export function expectedText(text: Words, number: Shown, estimate: Estimate): string {
  return text.estimateOf(estimateText(text, number, estimate), text[`basis${estimate.basis}`]);
}

export function divisionText(text: Words, number: Shown, { by, parts, first, isKnown }: Division): string {
  if (by === "NONE") return text.notDivided;
  const how = by === "TIME" ? text.byTime : by === "PAGE" ? text.byPages : by;
  const shown = first.map(({ name, records }) => (records === null ? name : `${name}: ${number(records)}`)).join("; ");
  return isKnown ? text.wasDivided(how, number(parts), shown) : text.willBeDivided(how, number(parts), shown);
}

export function ladderText(text: Words, { name, kind, parts, count }: LadderStep): string {
  const shown = parts.join(" | ");
  return kind === "halves" ? text.inHalves(name, shown) : text.inParts(name, count, shown);
}
