/** Walks through the list of a slice, page by page: the records themselves, or the ids of records to fetch. */
import type { Page } from "../decode/index.ts";
import { pagesOf } from "../slice/parts.ts";
import { makeWay } from "./background.ts";
import { clientFilter } from "./client-filter.ts";
import { createCommits } from "./commits.ts";
import type { CompiledEndpoint } from "./compiled.ts";
import { cutByEstimate } from "./estimate.ts";
import { fetchAt } from "./page-at.ts";
import { commitPage, type FetchedPage, keepBody } from "./page-commit.ts";
import { contentOf } from "./page-content.ts";
import { nextPosition, type PageFacts, type Position } from "./position.ts";
import {
  announced,
  countNew,
  endOf,
  overBudget,
  overIdLimit,
  tooLarge,
  type Walk,
  type WalkDeps,
  type WalkEnd,
  withSmallerSlice,
} from "./walk.ts";

/** Counts the slice before its first page, where the definition says how. */
export async function probe(deps: WalkDeps, walk: Walk): Promise<WalkEnd | undefined> {
  const { list } = walk.task.source;
  if (walk.batchNo > 0) return undefined;
  if (walk.expected !== undefined) return tooLarge(walk, walk.expected); // A part was counted when it was made.
  if (!list.spec.window?.probe || !list.spec.window.supportsUpdatedSince) return undefined;
  const fetched = await fetchAt(deps, walk, list, walk.position, { isProbe: true });
  if (fetched.kind !== "page") return endOf(deps, walk, fetched);
  const { total } = fetched.page;
  if (total === undefined) return undefined;
  walk.expected = total;
  return tooLarge(walk, total);
}

export async function walkList(deps: WalkDeps, walk: Walk): Promise<WalkEnd | undefined> {
  const { list, detail } = walk.task.source;
  const { spec } = list;
  const pages = pagesOf(walk.task.context.part);
  let position = walk.position;
  let stalledPages = 0;
  /** The largest total of any page: a list does not end early because one page announces less. */
  let total: number | undefined;
  let lastOrder = "";
  let isOver = false;
  let tooDeep: string | undefined;
  const commits = createCommits();
  const filter = clientFilter(walk);
  let fetching = fetchAt(deps, walk, list, position);
  while (!isOver) {
    const fetched = await commits.whileCommitting(fetching);
    if (fetched.kind !== "page") {
      await commits.done();
      return endOf(deps, walk, fetched);
    }
    const { page } = fetched;
    const filtered = filter?.of(page);
    if (filtered && "unordered" in filtered) {
      await commits.done();
      return { kind: "incomplete", reason: filtered.unordered };
    }
    // Of a list that is filtered here, the total counts all windows.
    if (page.total !== undefined && !filter) {
      const ended = position.pageNo === 1 ? tooLarge(walk, page.total) : undefined;
      if (ended) return ended;
      // A later page by time is a query of its own, and counts what is left.
      if (spec.pagination.type !== "TIME" || position.pageNo === 1) walk.expected = announced(walk, page.total);
    }
    const content = contentOf(filtered?.page ?? page);
    if (page.total !== undefined) total = Math.max(total ?? 0, page.total);
    const next = nextPosition(spec, position, { ...factsOf(page, content.latest), total }, pages);
    if (position.pageNo === 1 && next.kind === "page" && walk.expected === undefined && !filter) {
      const cut = await cutByEstimate(deps, walk, page, content);
      if (cut) return cut;
    }
    const body = keepBody(deps, list, fetched.exchange);
    const counted = countNew(walk, content);
    const skipped = filtered ? walk.seen.add(filtered.outside.map((id) => `-${id}`)).added : 0;
    const overLimit = overIdLimit(walk);
    if (overLimit !== undefined) {
      await commits.done();
      return withSmallerSlice(walk.task, overLimit, { total: walk.expected });
    }
    const repeats = page.items.length > 0 && counted.added + skipped === 0;
    stalledPages = repeats ? stalledPages + 1 : 0;
    // A source that goes on with what it has already answered would go on for ever, whatever its tokens say.
    const isStalled = repeats && (content.order === lastOrder || stalledPages >= spec.pagination.stalledPages);
    lastOrder = content.order;
    const isPast = filtered?.isPast ?? false;
    const isLast = next.kind !== "page" || isStalled || isPast || (repeats && isEndOfTime(spec, page));
    if (next.kind === "page" && isStalled && !isCounted(walk) && !isEndOfTime(spec, page)) {
      await commits.done();
      return {
        kind: "incomplete",
        reason: `PAGINATION_STALLED: page ${position.pageNo} has nothing that earlier pages had not`,
      };
    }
    if (next.kind === "too deep" && !isPast) tooDeep = next.reason;
    isOver = isLast;
    const following: Position =
      !isLast && next.kind === "page" ? next.position : { pageNo: position.pageNo, isListed: true };
    const fetchedPage: FetchedPage = {
      phase: 1,
      endpoint: list,
      exchange: fetched.exchange,
      page,
      content,
      body,
      ...counted,
      ...(detail ? { received: 0 } : {}),
      before: position,
      next: following,
    };
    if (content.latest && (!walk.latest || content.latest > walk.latest)) walk.latest = content.latest;
    await commits.done();
    if (tooDeep !== undefined) break;
    commits.start(commitPage(deps, walk, fetchedPage));
    if (!isOver) {
      const paused = overBudget(deps, walk) ?? (await makeWay(deps, walk));
      if (paused) {
        await commits.done();
        return paused;
      }
      position = following;
      fetching = fetchAt(deps, walk, list, position);
    }
  }
  await commits.done();
  return tooDeep === undefined ? undefined : withSmallerSlice(walk.task, tooDeep, { total: walk.expected });
}

/** A page by time begins with the last record of the page before it, so the last page has nothing else. */
function isEndOfTime({ pagination }: CompiledEndpoint["spec"], { items }: Page): boolean {
  return pagination.type === "TIME" && items.length < pagination.pageSize;
}

/** All that the source announced has come, so a repeated page is its way to end. */
function isCounted({ expected, seen }: Walk): boolean {
  return expected !== undefined && seen.size >= expected;
}

/** What the page tells of its list, beside the total. */
export function factsOf(page: Page, latest: Date | undefined): Omit<PageFacts, "total"> {
  return {
    items: page.items.length,
    count: page.count,
    nextToken: page.nextToken,
    nextUrl: page.nextUrl,
    hasMore: page.hasMore,
    latest,
  };
}
