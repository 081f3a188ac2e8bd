/**
 * What pages read, kept fresh. A query names the kinds of changes that concern it; a hint of such a change fetches it again,
 * together with others, at most four times a second or at its own pace. A reply that is older than the hint is fetched again, a few
 * times, and then shown. Without the stream, queries are fetched every five seconds, at most at their own pace.
 */
import {
  keepPreviousData,
  type Query,
  QueryClient,
  type UseInfiniteQueryResult,
  type UseQueryResult,
  useInfiniteQuery,
  useQuery,
} from "@tanstack/react-query";
import { ApiError, call, probe } from "./client.ts";
import { type Change, openStream, type StreamState } from "./stream.ts";

/** Changes of one entity, or of all of the kind. */
export interface Watch {
  kind: string;
  id?: string;
}

/** For a query that costs the server more than most, or that depends on the present time. */
export interface Pace {
  /** Changes that come sooner after the last reply are fetched together then. */
  atMostEveryMs?: number;
  /** It is fetched again after this time although nothing has changed. */
  atLeastEveryMs?: number;
}

/** A change fetches all loaded pages of a list, one after the other, so a long list is fetched less often. */
const FURTHER_PAGE_MS = 1_000;
const RENDER_GAP_MS = 250;
const POLL_MS = 5_000;
/** How often a reply that is older than its hint is fetched again: another process may answer that has not heard of it yet. */
const OLDER_MAX = 5;
const OLDER_WAIT_MS = 150;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      retry: (failures, error) =>
        failures < 3 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
      retryDelay: (attempt) => Math.min(1_000 * 2 ** attempt, 10_000),
      refetchOnWindowFocus: false,
    },
  },
});

/** The rev that a query must reach, by its hash. */
const wanted = new Map<string, bigint>();

function watchesOf(query: Query): readonly Watch[] {
  return (query.meta?.["watches"] as readonly Watch[] | undefined) ?? [];
}

async function fetchFresh<Data>(path: string, hash: string, signal: AbortSignal): Promise<Data> {
  for (let attempt = 1; ; attempt += 1) {
    const { data, rev } = await call<Data>(path, { signal });
    if (rev >= (wanted.get(hash) ?? 0n) || attempt === OLDER_MAX) return data;
    await new Promise((resolve) => setTimeout(resolve, OLDER_WAIT_MS * attempt));
  }
}

/** Reads a path of the API. Without a path, it waits. The earlier data stay while others are fetched. */
export function useLive<Data>(
  path: string | undefined,
  watches: readonly Watch[] = [],
  { atMostEveryMs = 0, atLeastEveryMs }: Pace = {},
): UseQueryResult<Data, ApiError> {
  return useQuery<Data, ApiError>({
    queryKey: [path],
    queryFn: ({ signal }) => fetchFresh<Data>(path ?? "", hashOf(path), signal),
    enabled: path !== undefined,
    placeholderData: keepPreviousData,
    refetchInterval: atLeastEveryMs ?? false,
    meta: { watches, atMostEveryMs },
  });
}

/** Pages of a list: `pathOf` gets the cursor of the page, and `nextOf` finds that of the next one. */
export function useLiveList<Page>(
  pathOf: (cursor: string | undefined) => string,
  nextOf: (page: Page) => string | null | undefined,
  watches: readonly Watch[] = [],
  { atMostEveryMs = 0, atLeastEveryMs }: Pace = {},
): UseInfiniteQueryResult<readonly Page[], ApiError> {
  const key = pathOf(undefined);
  return useInfiniteQuery<Page, ApiError, readonly Page[], readonly [string, "list"], string | undefined>({
    queryKey: [key, "list"],
    queryFn: ({ pageParam, signal }) => fetchFresh<Page>(pathOf(pageParam), JSON.stringify([key, "list"]), signal),
    initialPageParam: undefined,
    getNextPageParam: (page) => nextOf(page) ?? undefined,
    select: ({ pages }) => pages,
    placeholderData: keepPreviousData,
    refetchInterval: atLeastEveryMs ?? false,
    meta: { watches, atMostEveryMs },
  });
}

/** What a list calls when its end comes into view: undefined if there is nothing more, or it is being fetched. */
export function onEndOf(list: {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage(): Promise<unknown>;
}): (() => void) | undefined {
  return list.hasNextPage && !list.isFetchingNextPage ? () => void list.fetchNextPage() : undefined;
}

function hashOf(path: string | undefined): string {
  return JSON.stringify([path]);
}

/** After a write, without waiting for the hint. */
export function refresh(...watches: readonly Watch[]): Promise<void> {
  return queryClient.invalidateQueries({
    predicate: (query) => watchesOf(query).some((one) => watches.some((other) => isSame(one, other))),
  });
}

function isSame(one: Watch, other: Watch): boolean {
  return one.kind === other.kind && (one.id === undefined || other.id === undefined || one.id === other.id);
}

function concerns({ kind, id }: Watch, change: Change): boolean {
  return kind === change.kind && (id === undefined || change.id === "*" || id === change.id);
}

function paceMsOf({ meta, state: { data } }: Query): number {
  const ownMs = (meta?.["atMostEveryMs"] as number | undefined) ?? 0;
  const { pages } = (data ?? {}) as { pages?: unknown };
  return Math.max(ownMs, Array.isArray(pages) ? (pages.length - 1) * FURTHER_PAGE_MS : 0);
}

/** What no change concerns stays as it is, unless it has failed: the server may be back. */
function isPolled(query: Query): boolean {
  return watchesOf(query).length > 0 || query.state.error !== null;
}

let state: StreamState = "polling";
const stateListeners = new Set<() => void>();
export const streamState = {
  get: () => state,
  subscribe(listener: () => void): () => void {
    stateListeners.add(listener);
    return () => void stateListeners.delete(listener);
  },
};

/** After the rev of the first reply. Returns what ends it. */
export function followChanges(after: bigint): () => void {
  let pending: Change[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const later = new Map<string, ReturnType<typeof setTimeout>>();

  /** At once, unless the query has a pace and was answered just now. */
  function invalidate(query: Query): void {
    if (later.has(query.queryHash)) return;
    const everyMs = paceMsOf(query);
    const waitMs = query.state.dataUpdatedAt + everyMs - Date.now();
    const fetchAgain = () => {
      later.delete(query.queryHash);
      void queryClient.invalidateQueries({ queryKey: query.queryKey, exact: true });
    };
    if (everyMs > 0 && waitMs > 0) later.set(query.queryHash, setTimeout(fetchAgain, waitMs));
    else fetchAgain();
  }

  function flush(): void {
    timer = undefined;
    const changes = pending;
    pending = [];
    for (const query of queryClient.getQueryCache().getAll()) {
      const found = changes.filter((change) => watchesOf(query).some((watch) => concerns(watch, change)));
      if (found.length === 0) continue;
      const rev = found.reduce((highest, change) => (BigInt(change.rev) > highest ? BigInt(change.rev) : highest), 0n);
      wanted.set(query.queryHash, rev);
      invalidate(query);
    }
  }
  const end = openStream(after, {
    onChanges(changes) {
      pending.push(...changes);
      timer ??= setTimeout(flush, RENDER_GAP_MS);
    },
    onGap() {
      wanted.clear();
      void queryClient.invalidateQueries();
    },
    onState(next) {
      const isBack = state === "polling" && next === "live";
      // The page may read nothing for minutes: whether the server is there is asked now.
      if (state === "live" && next === "polling") void probe();
      state = next;
      // What failed while the server was away has no other reason to be fetched again.
      if (isBack) void queryClient.refetchQueries({ type: "active", predicate: (query) => query.state.error !== null });
      for (const listener of stateListeners) listener();
    },
  });
  const polling = setInterval(() => {
    if (state !== "polling" || document.hidden) return;
    for (const query of queryClient.getQueryCache().findAll({ type: "active" })) if (isPolled(query)) invalidate(query);
  }, POLL_MS);
  return () => {
    end();
    clearTimeout(timer);
    for (const one of later.values()) clearTimeout(one);
    clearInterval(polling);
  };
}
