/**
 * Keeps the data of pages fresh. A query names the kinds of changes it depends on; a hint about such a change refetches it,
 * batched with others, at most four times a second or at the pace of the query. A response older than the hint or than the data
 * shown is discarded and fetched again. Without the stream, queries are polled every five seconds (or at their pace); with it,
 * only queries with a transient error are polled.
 */
import {
  hashKey,
  type Query,
  QueryClient,
  type QueryKey,
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

/** Limits for a query that is expensive for the server or depends on the current time. */
export interface Pace {
  /** Minimum time between two fetches; earlier changes wait and are fetched together. */
  atMostEveryMs?: number;
  /** Refetch after this time even if nothing changed. */
  atLeastEveryMs?: number;
}

/** A change fetches all loaded pages of a list, one after the other, so a long list is fetched less often. */
const FURTHER_PAGE_MS = 1_000;
const RENDER_GAP_MS = 250;
const POLL_MS = 5_000;
/** Wait before a retry: the process that responded may not have seen the change yet. */
const OLDER_WAIT_MS = 150;
/**
 * After this many attempts, a response with the changes known at the first attempt suffices: changes may arrive faster than
 * responses.
 */
const OLDER_MAX = 5;
/**
 * After this many attempts (30 s), an older response is shown and marked out of date: the process may have lost its connection
 * for hints.
 */
const OLDER_END = 20;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // A browser without a network still reaches a server on its own machine.
      networkMode: "always",
      staleTime: 30_000,
      retry: (failures, error) => failures < 3 && isTransient(error),
      retryDelay: (attempt, error) => Math.max(Math.min(1_000 * 2 ** attempt, 10_000), retryAfterMsOf(error)),
      refetchOnWindowFocus: false,
    },
  },
});

/** A transient error: the server was unreachable, busy or overloaded. */
function isTransient(error: Error | null): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500);
}

/** Honours Retry-After: otherwise a key over its rate limit would stay over it. */
function retryAfterMsOf(error: Error | null): number {
  return error instanceof ApiError ? error.retryAfterMs : 0;
}

/** The rev that a reply must reach, by the hash of its query: that of the newest hint or reply. */
const requiredRev = new Map<string, bigint>();
/** The hashes of queries in use that show an older reply. While there is one, queries are polled, and the page says so. */
const staleQueries = new Set<string>();
queryClient.getQueryCache().subscribe(({ type, query }) => {
  if (type === "removed") requiredRev.delete(query.queryHash);
  if (type !== "observerRemoved" || query.isActive() || !staleQueries.has(query.queryHash)) return;
  query.invalidate();
  setStale(query.queryHash, false);
});

function setStale(hash: string, isStale: boolean): void {
  const query = queryClient.getQueryCache().get(hash);
  // What is never polled would stay stale.
  if (staleQueries.has(hash) === isStale || (isStale && !(query?.isActive() && watchesOf(query).length > 0))) return;
  if (isStale) staleQueries.add(hash);
  else staleQueries.delete(hash);
  for (const listener of stateListeners) listener();
}

function watchesOf(query: Query): readonly Watch[] {
  return (query.meta?.["watches"] as readonly Watch[] | undefined) ?? [];
}

/** Fetches a path until the response is as new as the latest known change of the query, for up to about 30 s. */
export async function fetchFresh<Data>(path: string, queryKey: QueryKey, signal: AbortSignal): Promise<Data> {
  const hash = hashKey(queryKey);
  const knownRev = () => requiredRev.get(hash) ?? 0n;
  const knownAtFirst = knownRev();
  for (let attempt = 1; ; attempt += 1) {
    const { data, rev } = await call<Data>(path, { signal });
    if (rev >= knownRev()) requiredRev.set(hash, rev);
    const isRecent = rev >= knownRev() || (attempt >= OLDER_MAX && rev >= knownAtFirst);
    if (isRecent || staleQueries.has(hash) || attempt >= OLDER_END) {
      setStale(hash, !isRecent);
      return data;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(OLDER_WAIT_MS * attempt, POLL_MS)));
  }
}

interface Named {
  /** Names what is shown, for a `DataList`; undefined while that is still what another path answered. */
  live: string | undefined;
}

/** A Proxy instead of a copy: a copy reads every property, and a component rerenders for each property it has read. */
function withLiveName<Result extends { isPlaceholderData: boolean }>(
  result: Result,
  path: string | undefined,
): Result & Named {
  return new Proxy(result as Result & Named, {
    get: (target, key) => (key === "live" ? (target.isPlaceholderData ? undefined : path) : Reflect.get(target, key)),
  });
}

/** Parameters that say what is asked for. The others filter it. */
const SUBJECTS = ["by", "chainId", "kpiId", "modelId", "opTime", "tenant"];

/** Keeps the previous data when only filters changed. Data of another entity would be shown as this one's. */
export function keepOfSameSubject(path: string | undefined) {
  const wanted = subjectOf(path);
  return <Data>(earlier: Data | undefined, query: { queryKey: readonly unknown[] } | undefined): Data | undefined =>
    subjectOf(query?.queryKey[0]) === wanted ? earlier : undefined;
}

function subjectOf(key: unknown): string {
  const [path = "", query] = String(key).split("?", 2);
  const parameters = new URLSearchParams(query);
  return [path, ...SUBJECTS.map((name) => parameters.get(name) ?? "")].join("\n");
}

/** Reads a path of the API. Without a path, it waits. */
export function useLive<Data>(
  path: string | undefined,
  watches: readonly Watch[] = [],
  { atMostEveryMs = 0, atLeastEveryMs }: Pace = {},
): UseQueryResult<Data, ApiError> & Named {
  const result = useQuery<Data, ApiError>({
    queryKey: [path],
    queryFn: ({ queryKey, signal }) => fetchFresh<Data>(path ?? "", queryKey, signal),
    enabled: path !== undefined,
    placeholderData: keepOfSameSubject(path),
    refetchInterval: atLeastEveryMs ?? false,
    meta: { watches, atMostEveryMs },
  });
  return withLiveName(result, path);
}

/** Pages of a list: `pathOf` gets the cursor of the page, and `nextOf` finds that of the next one. */
export function useLiveList<Page>(
  pathOf: (cursor: string | undefined) => string,
  nextOf: (page: Page) => string | null | undefined,
  watches: readonly Watch[] = [],
  { atMostEveryMs = 0, atLeastEveryMs }: Pace = {},
): UseInfiniteQueryResult<readonly Page[], ApiError> & Named {
  const key = pathOf(undefined);
  const result = useInfiniteQuery<Page, ApiError, readonly Page[], readonly [string, "list"], string | undefined>({
    queryKey: [key, "list"],
    queryFn: ({ pageParam, queryKey, signal }) => fetchFresh<Page>(pathOf(pageParam), queryKey, signal),
    initialPageParam: undefined,
    getNextPageParam: (page) => nextOf(page) ?? undefined,
    select: ({ pages }) => pages,
    placeholderData: keepOfSameSubject(key),
    refetchInterval: (query) => (atLeastEveryMs === undefined ? false : Math.max(atLeastEveryMs, paceMsOf(query))),
    meta: { watches, atMostEveryMs },
  });
  return withLiveName(result, key);
}

export interface NumberedPage<Item> {
  items: readonly Item[];
  page: number;
  size: number;
  total: number;
}

/** `nextOf` for pages that are numbered. */
export function pageAfter({ items, page, size }: NumberedPage<unknown>): string | null {
  return items.length < size ? null : String(page + 1);
}

/** What a list calls when its end comes into view: undefined if there is nothing more, or it is being fetched. */
export function onEndOf(list: {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage(): Promise<unknown>;
}): (() => void) | undefined {
  return list.hasNextPage && !list.isFetchingNextPage ? () => void list.fetchNextPage() : undefined;
}

let writes = 0;
/** How often the person has changed something, which a list that is in use shows at once. */
export function writesSoFar(): number {
  return writes;
}

/** After a write, without waiting for the hint. */
export function refresh(...watches: readonly Watch[]): Promise<void> {
  writes += 1;
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

function paceMsOf({ meta, state: { data } }: Pick<Query, "meta" | "state">): number {
  const ownMs = (meta?.["atMostEveryMs"] as number | undefined) ?? 0;
  const { pages } = (data ?? {}) as { pages?: unknown };
  return Math.max(ownMs, Array.isArray(pages) ? (pages.length - 1) * FURTHER_PAGE_MS : 0);
}

/** Never cancels a running fetch: changes faster than responses would cancel all of them. */
function waitMsOf(query: Query): number {
  if (query.state.fetchStatus === "fetching") return RENDER_GAP_MS;
  const ageMs = Date.now() - query.state.dataUpdatedAt;
  return ageMs < 0 ? 0 : paceMsOf(query) - ageMs; // The clock of the browser may have been set back.
}

/** What no change concerns stays as it is. */
function isPolled(query: Query): boolean {
  const { error, errorUpdatedAt } = query.state;
  if (isTransient(error)) {
    const ageMs = Date.now() - errorUpdatedAt;
    return ageMs < 0 || ageMs >= retryAfterMsOf(error); // The clock of the browser may have been set back.
  }
  return streamState.get() === "polling" && watchesOf(query).length > 0;
}

let state: StreamState = "polling";
const stateListeners = new Set<() => void>();
export const streamState = {
  get: (): StreamState => (state === "live" && staleQueries.size > 0 ? "polling" : state),
  subscribe(listener: () => void): () => void {
    stateListeners.add(listener);
    return () => void stateListeners.delete(listener);
  },
};

/** Age of the oldest live data on the page. */
export function readAgeMs(): number {
  const shown = queryClient
    .getQueryCache()
    .findAll({ type: "active", predicate: (query) => watchesOf(query).length > 0 });
  const now = Date.now();
  return now - Math.min(now, ...shown.map(({ state: { dataUpdatedAt } }) => dataUpdatedAt).filter((at) => at > 0));
}

/** Follows changes after the rev of the first response. Returns a function that stops it. */
export function followChanges(after: bigint): () => void {
  let pending: Change[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const later = new Map<string, ReturnType<typeof setTimeout>>();

  /**
   * Refetches now, or later if the query has a pace and was just fetched. A hidden page refetches everything when it is shown.
   */
  function invalidate(query: Query): void {
    if (later.has(query.queryHash) || document.hidden) return;
    const waitMs = waitMsOf(query);
    if (waitMs <= 0) return void queryClient.invalidateQueries({ queryKey: query.queryKey, exact: true });
    const again = () => {
      later.delete(query.queryHash);
      invalidate(query);
    };
    later.set(query.queryHash, setTimeout(again, waitMs));
  }

  function flush(): void {
    timer = undefined;
    const changes = pending;
    pending = [];
    for (const query of queryClient.getQueryCache().getAll()) {
      const found = changes.filter((change) => watchesOf(query).some((watch) => concerns(watch, change)));
      if (found.length === 0) continue;
      const rev = found.reduce((highest, change) => (BigInt(change.rev) > highest ? BigInt(change.rev) : highest), 0n);
      if (rev > (requiredRev.get(query.queryHash) ?? 0n)) requiredRev.set(query.queryHash, rev);
      invalidate(query);
    }
  }
  const end = openStream(after, {
    onChanges(changes) {
      pending.push(...changes);
      timer ??= setTimeout(flush, RENDER_GAP_MS);
    },
    onGap(rev) {
      requiredRev.clear();
      for (const query of queryClient.getQueryCache().getAll()) {
        // A response in flight may lack the missed changes.
        if (rev !== undefined) requiredRev.set(query.queryHash, BigInt(rev));
        invalidate(query);
      }
    },
    onState(next) {
      // The page may not fetch anything for minutes, so probe the server now.
      if (state === "live" && next === "polling") void probe();
      state = next;
      for (const listener of stateListeners) listener();
    },
  });
  const polling = setInterval(() => {
    for (const query of queryClient.getQueryCache().findAll({ type: "active" })) if (isPolled(query)) invalidate(query);
  }, POLL_MS);
  return () => {
    end();
    clearTimeout(timer);
    for (const one of later.values()) clearTimeout(one);
    clearInterval(polling);
  };
}
