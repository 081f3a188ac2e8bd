/** The log of an attempt, read to its end and then on as it grows. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { type ApiError, withQuery } from "../../api/client.ts";
import { fetchFresh, queryClient } from "../../api/live.ts";
import { type LogPage, paths } from "../api.ts";
import { appended, type Line } from "./lines.ts";

export interface Log {
  lines: readonly Line[];
  next: string | undefined;
  /** Its present end was reached. */
  isWhole: boolean;
}

/** As many as the API gives at once. */
const PAGE_LINES = 5_000;
/** An attempt can log 100,000 lines. */
const PAGES_MAX = 25;
/** Lines send no hint: a thousand a second would make every page that shows the run read it again. */
const POLL_MS = 1_000;

interface LogOf {
  runId: string;
  nodeId: string;
  attempt: number;
  isRunning: boolean;
}

export function useLog({ runId, nodeId, attempt, isRunning }: LogOf): UseQueryResult<Log, ApiError> {
  const path = paths.logs(runId, nodeId);
  const queryKey = [path, "log", attempt];
  return useQuery<Log, ApiError>({
    queryKey,
    async queryFn({ signal }) {
      let log: Log = queryClient.getQueryData<Log>(queryKey) ?? { lines: [], next: undefined, isWhole: false };
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const asked = withQuery(path, { attempt, after: log.next, limit: PAGE_LINES });
        const { items, next } = await fetchFresh<LogPage>(asked, queryKey, signal);
        const isWhole = items.length < PAGE_LINES;
        if (items.length > 0) log = { lines: appended(log.lines, items), next, isWhole };
        if (isWhole) break;
        queryClient.setQueryData(queryKey, log); // Shown while the rest is read.
      }
      return log.isWhole ? log : { ...log, isWhole: true };
    },
    refetchInterval: isRunning ? POLL_MS : false,
    // At its end, the last lines are written before the node ends.
    meta: { watches: [{ kind: "run", id: runId }] },
  });
}
