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

type Filter = "stage" | "status" | "reason" | "q";

/** Takes these filters away; undefined if there are none. The address may have others, of another tab. */
export function useClearFilters(filters: readonly Filter[]): (() => void) | undefined {
  const [search, set] = useTrackingSearch();
  if (filters.every((name) => search[name] === undefined)) return undefined;
  return () => set(Object.fromEntries(filters.map((name) => [name, undefined])));
}
