/** How a window that is expected to be too large will be divided: in time, then by the first step of the ladder. For previews only. */
import { capOf, type Estimate, limitOf } from "../slice/estimate.ts";
import { intoPages } from "../slice/pages.ts";
import { nextStep, type Part, type Step, shownPart } from "../slice/parts.ts";
import { dimensionsOf, type EndpointSpec } from "../spec/snapshot.ts";
import type { EarlierSlice } from "../store/plans/estimates.ts";
import { shownRange } from "./range.ts";
import { middleOf, type Range } from "./window.ts";

export interface Division {
  /** `TIME`, `PAGE`, the dimension of the ladder, or `NONE` where nothing divides it: it will be INCOMPLETE. */
  by: string;
  /** The smallest number of parts, or as many as there were when it was divided before. */
  parts: number;
  /** The first of them. Of time and of halves: the first step. */
  first: { name: string; records: number | null }[];
  /** Whether the parts and their sizes are those of an earlier harvest of the window. */
  isKnown: boolean;
}

/** A step of the ladder as a whole: what it divides a window into that is over the cap. */
export interface LadderStep {
  name: string;
  type: string;
  kind: "halves" | "list";
  /** The first parts: all that there is, both halves of it, or a part for each value. */
  parts: string[];
  count: number;
}

const SHOWN = 20;

export function ladderOf({ slicing }: Pick<EndpointSpec, "slicing">): LadderStep[] {
  return dimensionsOf(slicing).flatMap((dimension) => {
    const step = firstStep([dimension]);
    if (!step) return [];
    const all = partsOf(step);
    return {
      name: dimension.name,
      type: dimension.type,
      kind: step.kind === "list" ? ("list" as const) : ("halves" as const),
      parts: all.slice(0, SHOWN).map(shownPart),
      count: all.length,
    };
  });
}

/** Undefined for a window that is not expected to be divided. */
export function divisionOf(
  spec: EndpointSpec,
  window: Range,
  estimate: Estimate | undefined,
  earlier: EarlierSlice | undefined,
): Division | undefined {
  if (!spec.window || !estimate) return undefined;
  const { records } = estimate;
  const cap = capOf(spec)?.records ?? Number.POSITIVE_INFINITY;
  const pages = records > cap ? undefined : intoPages(spec, records);
  if (pages) {
    const first = pages.slice(0, SHOWN).map(({ part, total }) => ({ name: shownPart(part), records: total }));
    return { by: "PAGE", parts: pages.length, first, isKnown: false };
  }
  const limit = limitOf(spec) ?? Number.POSITIVE_INFINITY;
  if (records <= limit) return undefined;
  const at = middleOf(spec.window, window);
  if (at) {
    const halves = [
      { from: window.from, to: at },
      { from: at, to: window.to },
    ];
    const widthMs = window.to.getTime() - window.from.getTime();
    const share = (half: Range) => Math.round((records * (half.to.getTime() - half.from.getTime())) / widthMs);
    const first = halves.map((half) => ({ name: shownRange(half), records: share(half) }));
    return { by: "TIME", parts: Math.ceil(records / limit), first, isKnown: false };
  }
  if (records <= cap) return undefined;
  if (earlier?.parts) {
    const first = earlier.parts.map(({ part, records: had }) => ({ name: shownPart(part as Part), records: had }));
    const [by = ""] = Object.keys(earlier.parts[0]?.part ?? {});
    return { by, parts: earlier.parts_count, first, isKnown: true };
  }
  const step = firstStep(dimensionsOf(spec.slicing));
  if (!step) return { by: "NONE", parts: 0, first: [], isKnown: false };
  const all = partsOf(step);
  const first = all.slice(0, SHOWN).map((part) => ({ name: shownPart(part), records: null }));
  const least = step.kind === "list" ? all.length : Math.ceil(records / cap);
  return { by: step.dimension.name, parts: Math.max(2, least), first, isKnown: false };
}

/** A dimension that is new to a slice is counted as a whole, and then halved. */
function firstStep(ladder: Parameters<typeof nextStep>[0]): Step | undefined {
  const step = nextStep(ladder, {});
  const [whole] = step?.kind === "whole" ? step.parts : [];
  return whole ? (nextStep(ladder, whole) ?? step) : step;
}

function partsOf({ parts, rest }: Step): Part[] {
  return rest ? [...parts, rest] : parts;
}
