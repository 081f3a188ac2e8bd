/** The nodes of a run, kept fresh: after the first reading only what has changed is fetched, so a run of 10,000 nodes stays cheap. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { type ApiError, withQuery } from "../../api/client.ts";
import { fetchFresh, queryClient } from "../../api/live.ts";
import { paths, type RunNode } from "../api.ts";

/** A row may be committed some time after the moment that it names. */
const OVERLAP_MS = 10_000;

export function useRunNodes(runId: string): UseQueryResult<readonly RunNode[], ApiError> {
  const path = paths.nodes(runId);
  const queryKey = [path, "nodes"];
  return useQuery<readonly RunNode[], ApiError>({
    queryKey,
    async queryFn({ signal }) {
      const known = queryClient.getQueryData<readonly RunNode[]>(queryKey);
      const newest = known?.reduce((most, { updatedAt }) => Math.max(most, Date.parse(updatedAt)), 0);
      const since = newest === undefined ? undefined : new Date(newest - OVERLAP_MS).toISOString();
      const data = await fetchFresh<readonly RunNode[]>(withQuery(path, { artifacts: false, since }), queryKey, signal);
      return known ? updated(known, data) : data;
    },
    meta: { watches: [{ kind: "run", id: runId }] },
  });
}

function updated(known: readonly RunNode[], changed: readonly RunNode[]): readonly RunNode[] {
  const byId = new Map(changed.map((node) => [node.nodeId, node]));
  return changed.length === 0 ? known : known.map((node) => byId.get(node.nodeId) ?? node);
}

/** The one that failed first, as the reason of the run says. */
export function firstFailed(nodes: readonly RunNode[]): string | undefined {
  const failed = nodes.filter(({ status }) => status === "FAILED");
  return failed.toSorted((one, other) => (one.endedAt ?? "").localeCompare(other.endedAt ?? ""))[0]?.nodeId;
}
