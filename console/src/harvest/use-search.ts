/** The state of a page of harvest, which is in its address. */
import { useNavigate } from "@tanstack/react-router";
import { isInPlace } from "../app/search-values.ts";
import { type PlanSearch, planRoute, type SourceSearch, sourceRoute } from "./routes.ts";

interface InAddress<Search> {
  search: Search;
  set(change: Search): void;
}

export function useSourceSearch(source: string): InAddress<SourceSearch> {
  const search = sourceRoute.useSearch();
  const navigate = useNavigate();
  return {
    search,
    set: (change) =>
      void navigate({
        to: "/harvest/$source",
        params: { source },
        search: { ...search, ...change },
        replace: isInPlace(search, change, "slice", "record"),
      }),
  };
}

export function usePlanSearch(planId: string): InAddress<PlanSearch> {
  const search = planRoute.useSearch();
  const navigate = useNavigate();
  return {
    search,
    set: (change) =>
      void navigate({
        to: "/harvest/plans/$planId",
        params: { planId },
        search: { ...search, ...change },
        replace: isInPlace(search, change, "slice"),
      }),
  };
}
