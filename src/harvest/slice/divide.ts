/**
 * Divides what is over a cap into parts below it, by what the source counts. The parts that are known at any moment share no
 * record and have as many as the whole, so dividing can stop between any two counts, and a part that is still too large is
 * divided by its own task.
 *
 * Of two halves only the first is counted: the other has the rest. A dimension that is new to a part is counted as a whole
 * first, so a record outside of it is noticed before anything is fetched.
 */
import type { DimensionSpec } from "../spec/snapshot.ts";
import { nextStep, type Part, type Step, shownPart } from "./parts.ts";

export interface CountedPart {
  part: Part;
  total: number;
}

/** What is counted of a slice that has so many records, by the JSON of each part. */
export interface Counted {
  total: number;
  parts: Record<string, number>;
}

/** `stop` is why no more can be counted now. */
export type Count<Stop> = (part: Part) => Promise<{ total: number } | { stop: Stop }>;

export type Divided<Stop> =
  /** With the parts that there are, if it was stopped on the way. */
  | { parts: CountedPart[]; stop?: Stop }
  /** The parts do not add up, or there is no dimension. */
  | { problem: string };

export interface Division<Stop> {
  ladder: readonly DimensionSpec[];
  /** No part may have more, if it can be divided. */
  cap: number;
  tolerance: number;
  count: Count<Stop>;
}

/** More parts at once would make one transaction too long. */
const PARTS_MAX = 2_000;

export async function divide<Stop>(division: Division<Stop>, whole: CountedPart): Promise<Divided<Stop>> {
  const { ladder, cap } = division;
  const open: CountedPart[] = [whole];
  const done: CountedPart[] = [];
  for (let one = open.pop(); one; one = open.pop()) {
    const step = one === whole || one.total > cap ? nextStep(ladder, one.part) : undefined;
    if (!step) {
      if (one === whole) return { problem: "no further dimension divides it" };
      done.push(one); // One that is still too large says so itself.
      continue;
    }
    const counted = await countStep(division, step, one);
    if ("problem" in counted) return counted;
    if ("stop" in counted) return { parts: [...done, one, ...open.toReversed()], stop: counted.stop };
    // The last of them is divided next, so the order is kept.
    open.push(...counted.parts.filter(({ total }) => total > 0).toReversed());
    if (done.length + open.length >= PARTS_MAX) break;
  }
  const parts = [...done, ...open.toReversed()];
  const [only] = parts;
  if (parts.length === 1 && only && only.total > cap) {
    return { problem: `no dimension divides them: all have ${shownPart(only.part)}` };
  }
  return { parts };
}

async function countStep<Stop>(
  { count, tolerance }: Division<Stop>,
  { dimension, kind, parts, rest }: Step,
  { part, total }: CountedPart,
): Promise<{ parts: CountedPart[] } | { stop: Stop } | { problem: string }> {
  const asked = kind === "halves" ? parts.slice(0, 1) : parts;
  const remainder = kind === "halves" ? parts[1] : rest;
  const counted: CountedPart[] = [];
  for (const one of asked) {
    const answer = await count(one);
    if ("stop" in answer) return answer;
    counted.push({ part: one, total: answer.total });
  }
  const sum = counted.reduce((all, one) => all + one.total, 0);
  const of = Object.keys(part).length === 0 ? "the window" : shownPart(part);
  if (sum > total + tolerance) {
    return { problem: `the parts by ${dimension.name} have ${sum} records, more than the ${total} of ${of}` };
  }
  if (remainder) return { parts: [...counted, { part: remainder, total: Math.max(0, total - sum) }] };
  if (sum < total - tolerance) {
    return { problem: `the parts by ${dimension.name} have ${sum} of the ${total} records of ${of}` };
  }
  return { parts: counted };
}
