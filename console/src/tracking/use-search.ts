/** The search parameters of the page, and a function that changes some of them in place. */
import { useNavigate } from "@tanstack/react-router";
import { isInPlace } from "../app/search-values.ts";
import { type TrackingSearch, trackingRoute } from "./routes.ts";

export function useTrackingSearch(): [TrackingSearch, (change: TrackingSearch) => void] {
  const navigate = useNavigate();
  const search = trackingRoute.useSearch();
  return [
    search,
    (change) =>
      void navigate({
        to: "/tracking",
        search: { ...search, ...change },
        replace: isInPlace(search, change, "file", "shard"),
      }),
  ];
}

const NO_FILTERS = { stage: undefined, status: undefined, reason: undefined, q: undefined } satisfies TrackingSearch;

/** Takes the filters away; undefined if there are none. */
export function useClearFilters(): (() => void) | undefined {
  const [{ stage, status, reason, q }, set] = useTrackingSearch();
  const isFiltered = [stage, status, reason, q].some((one) => one !== undefined);
  return isFiltered ? () => set(NO_FILTERS) : undefined;
}
