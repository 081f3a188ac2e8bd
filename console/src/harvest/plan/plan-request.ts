/** The request for a new plan, built from the form. Most of its fields are in the URL. */
import type { Param, Source } from "../api.ts";
import type { SourceSearch } from "../routes.ts";

export type WindowKind = "new" | "last" | "range";

export function windowKindOf({ last, from, to }: SourceSearch): WindowKind {
  if (from !== undefined || to !== undefined) return "range";
  return last === undefined ? "new" : "last";
}

/** Those that can be planned, the default one first. */
export function endpointsOf({ definition: { endpoints } }: Source): { name: string; params: readonly Param[] }[] {
  return Object.entries(endpoints)
    .filter(([, { role }]) => role !== "DETAIL")
    .toSorted(([, a], [, b]) => Number(b.default ?? false) - Number(a.default ?? false))
    .map(([name, { params = [] }]) => ({ name, params }));
}

/** Undefined until the form is filled in. */
export function planRequestOf(
  source: string,
  endpoint: string,
  search: SourceSearch,
  params: Readonly<Record<string, string>>,
  /** One on each line. */
  idLines: string,
): object | undefined {
  const given = Object.fromEntries(Object.entries(params).filter(([, value]) => value !== ""));
  const operation = search.plans === undefined ? {} : { operation: search.plans };
  const plan = { source, endpoint, ...operation, ...(Object.keys(given).length > 0 && { params: given }) };
  // It asks for known records, whatever their window.
  if (search.plans === "UPDATE") {
    if (search.which === "quarantined") return { ...plan, quarantined: true };
    if (search.which === undefined) return plan;
    const ids = idLines.split("\n").map((line) => line.trim());
    const named = [...new Set(ids)].filter((id) => id !== "");
    return named.length > 0 ? { ...plan, ids: named } : undefined;
  }
  switch (windowKindOf(search)) {
    case "new":
      return plan;
    case "last":
      return search.last ? { ...plan, window: { last: search.last } } : undefined;
    case "range":
      return search.from && search.to ? { ...plan, window: { from: search.from, to: search.to } } : undefined;
  }
}
