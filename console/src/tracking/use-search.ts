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
