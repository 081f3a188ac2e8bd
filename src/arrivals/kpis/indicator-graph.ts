/**
 * The graph of which KPIs are computed from which: finds cycles, and lists what to recompute, in dependency order, when
 * values have changed.
 */
import { drawCycle, findCycle } from "../../kernel/cycle.ts";

export interface Indicator {
  kpiId: string;
  type: "EXTENDED" | "COMPUTED";
  /** The KPIs in the formula of a COMPUTED one; ignored for an EXTENDED one. */
  references: readonly string[];
}

export interface IndicatorGraph {
  /**
   * The cycle as text (`KD1 -> KD2 -> KD1`, where each is a part of the next) that would exist if `changed` replaced the
   * present definition of that KPI.
   */
  cycleWith(changed: Indicator): string | undefined;
  /**
   * All COMPUTED KPIs that depend on `changedIds`, directly or not, in dependency order. One of `changedIds` is among them
   * only if it depends on another. The cost follows the size of the result.
   */
  affectedBy(changedIds: Iterable<string>): string[];
}

export function createIndicatorGraph(indicators: Iterable<Indicator>): IndicatorGraph {
  const partsOf = new Map<string, readonly string[]>();
  for (const indicator of indicators) partsOf.set(indicator.kpiId, effectiveReferences(indicator));
  const wholesOf = inverse(partsOf);

  return {
    cycleWith(changed) {
      // The changed KPI goes first, so that the cycle is printed from there.
      const parts = new Map([[changed.kpiId, effectiveReferences(changed)]]);
      for (const [kpiId, references] of partsOf) if (kpiId !== changed.kpiId) parts.set(kpiId, references);
      const cycle = findCycle(parts);
      return cycle && drawCycle(cycle);
    },

    affectedBy(changedIds) {
      const affected = new Set<string>();
      const reached = new Set(changedIds);
      for (const kpiId of reached) {
        for (const whole of wholesOf.get(kpiId) ?? []) {
          affected.add(whole);
          reached.add(whole); // A Set loop also visits what is added while it runs.
        }
      }
      return partsFirst(affected, wholesOf);
    },
  };
}

function partsFirst(kpiIds: ReadonlySet<string>, wholesOf: ReadonlyMap<string, readonly string[]>): string[] {
  /** How many parts of each KPI are not ordered yet. */
  const unmet = new Map<string, number>();
  for (const kpiId of kpiIds) {
    for (const whole of wholesOf.get(kpiId) ?? []) unmet.set(whole, (unmet.get(whole) ?? 0) + 1);
  }
  const ordered = [...kpiIds].filter((kpiId) => !unmet.has(kpiId));
  for (const kpiId of ordered) {
    for (const whole of wholesOf.get(kpiId) ?? []) {
      const left = (unmet.get(whole) ?? 0) - 1;
      unmet.set(whole, left);
      if (left === 0) ordered.push(whole);
    }
  }
  return ordered;
}

function effectiveReferences({ type, references }: Indicator): readonly string[] {
  return type === "COMPUTED" ? references : [];
}

function inverse(partsOf: ReadonlyMap<string, readonly string[]>): Map<string, string[]> {
  const wholesOf = new Map<string, string[]>();
  for (const [whole, parts] of partsOf) {
    for (const part of parts) {
      const wholes = wholesOf.get(part);
      if (wholes) wholes.push(whole);
      else wholesOf.set(part, [whole]);
    }
  }
  return wholesOf;
}
