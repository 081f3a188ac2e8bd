/**
 * A simulator of OpenAlex (`https://api.openalex.org`): lists of works by filter and cursor, single works, and the money that each
 * request costs. Filters by the time of update need a key, as in the real service.
 */
import { SECOND_MS } from "../../kernel/time/units.ts";
import type { SimulatedRecord } from "../common/records.ts";
import {
  type Simulator,
  type SimulatorOptions,
  type SourceContext,
  startSimulator,
  TRANSPORT_FAULTS,
} from "../common/simulator.ts";
import { type Answer, announcedTotal, type Source, type SourceRequest } from "../common/source.ts";
import { inText, readFilter, type WorksFilter } from "./filter.ts";
import { createPurse, keyOf, PRICES, type Purse } from "./money.ts";
import { asWorkId, FIELDS, typeOf, workIdOf, writeWork } from "./work.ts";

export interface OpenalexOptions extends SimulatorOptions {
  /** Dollars of a day, by key; otherwise 1 with a key and 0.1 without. */
  budgetsUsd?: Readonly<Record<string, number>>;
}

export const OPENALEX_FAULTS = [
  ...TRANSPORT_FAULTS,
  "duplicate-across-pages",
  "short-page",
  "total-off-by-one",
  "token-on-last-page",
  "merged-work",
] as const;

const PER_PAGE_DEFAULT = 25;
/** The documentation says 100; what was allowed before still is. */
const PER_PAGE_MAX = 200;
const PAGED_MAX = 10_000;
const REQUESTS_PER_SECOND = 100;
const JSON_TYPE = "application/json";

interface List {
  filter: WorksFilter;
  /** Costs ten times as much as a filter that searches. */
  search: string | undefined;
  perPage: number;
  page: number;
  cursor: string | undefined;
  sample: number | undefined;
  select: readonly string[] | undefined;
  groupBy: string | undefined;
}

export function startOpenalex(options: OpenalexOptions = {}): Promise<Simulator> {
  return startSimulator(
    {
      basePath: "",
      faults: OPENALEX_FAULTS,
      keepsDeleted: false,
      idOf: workIdOf,
      write: writeWork,
      open: (context) => openOpenalex(context, options),
    },
    options,
  );
}

function openOpenalex({ store, random, clock }: SourceContext, options: OpenalexOptions): Source {
  const purse = createPurse({ clock, budgetsUsd: options.budgetsUsd ?? {} });

  function works(request: SourceRequest): Answer {
    const list = readList(request.params);
    if (typeof list === "string") return paid(request, PRICES.list, () => refused(400, QUERY_ERROR, list));
    if (list.filter.needsKey && keyOf(request) === undefined) return refused(403, "Forbidden", KEY_NEEDED);
    return paid(request, list.search === undefined ? PRICES.list : PRICES.search, (price) => {
      const found = select(list);
      if (list.groupBy !== undefined) return grouped(list, found, price);
      const drawn = list.sample === undefined ? found : random.shuffled(found).slice(0, list.sample);
      return list.cursor === undefined
        ? written(list, drawn.length, drawn.slice((list.page - 1) * list.perPage, list.page * list.perPage), price)
        : behind(request, list, found, price);
    });
  }

  /** The page behind a cursor, which names the last work of the page before. */
  function behind(request: SourceRequest, list: List, found: readonly SimulatedRecord[], price: number): Answer {
    const { cursor = "*", perPage } = list;
    const last = cursor === "*" ? undefined : readCursor(cursor);
    if (cursor !== "*" && last === undefined)
      return refused(400, "Pagination error.", "The cursor value is not valid.");
    const first = last === undefined ? 0 : found.findIndex((work) => compare(work, last) > 0);
    const start = first < 0 ? found.length : first;
    const repeats = start > 0 && perPage > 1 && request.strikes("duplicate-across-pages") ? 1 : 0;
    const whole = found.slice(start - repeats, start - repeats + perPage);
    const isEnd = start - repeats + whole.length >= found.length;
    const page = !isEnd && whole.length > 1 && request.strikes("short-page") ? whole.slice(0, -1) : whole;
    const shown = page.at(-1);
    const goesOn = shown && (!isEnd || request.strikes("token-on-last-page"));
    const total = announcedTotal(request, random, found.length);
    return written(list, total, page, price, goesOn ? writeCursor(shown) : null);
  }

  function select({ filter: { bounds, conditions }, search = "" }: List): readonly SimulatedRecord[] {
    const [main] = bounds;
    const field = main?.field ?? "published";
    const of = (side: "from" | "until") =>
      bounds.flatMap((bound) => (bound.field === field ? (bound[side] ?? []) : []));
    const inTime = store.between(field, { from: Math.max(...of("from")), until: Math.min(...of("until")) });
    const others = bounds.filter((bound) => bound.field !== field);
    return inTime
      .filter((work) => conditions.every((holds) => holds(work)) && inText(work, search))
      .filter((work) =>
        others.every(
          ({ field: other, from = -Infinity, until = Infinity }) => work[other] >= from && work[other] <= until,
        ),
      )
      .sort(compare);
  }

  function single(request: SourceRequest, name: string): Answer {
    const price = keyOf(request) === undefined ? PRICES.singleWithoutKey : PRICES.single;
    const fields = request.params.get("select")?.split(",");
    const unknown = fields?.find((field) => !FIELDS.includes(field));
    return paid(request, price, () => {
      if (unknown !== undefined) return refused(400, QUERY_ERROR, unknownField(unknown));
      const work = store.find(asWorkId(name)) ?? byDoi(name);
      if (!work) return NOT_FOUND;
      const into = request.strikes("merged-work") ? store.find(workIdOf(work.ordinal + 1)) : undefined;
      if (into) return movedTo(into);
      return { status: 200, type: JSON_TYPE, body: fields ? picked(work.text, fields) : work.text };
    });
  }

  function byDoi(name: string): SimulatedRecord | undefined {
    const ordinal = Number(/^https:\/\/doi\.org\/10\.5555\/millrace\.(\d+)$/.exec(name)?.[1]);
    return Number.isNaN(ordinal) ? undefined : store.find(workIdOf(ordinal));
  }

  /** Headers and refusals of money; without limits there are none. */
  function paid(request: SourceRequest, price: number, answer: (price: number) => Answer): Answer {
    if (options.unlimited) return answer(price);
    if (!purse.pay(request, price)) return spent(request, purse, price);
    const { headers, ...rest } = answer(price);
    return { ...rest, headers: { ...purse.headers(request, price), ...headers } };
  }

  return {
    limitOf: (request) => ({
      key: keyOf(request) ?? request.remoteAddress,
      requests: REQUESTS_PER_SECOND,
      intervalMs: SECOND_MS,
    }),
    rateHeaders: () => ({}),
    tooMany(request) {
      const headers = options.unlimited ? {} : purse.headers(request, 0);
      return { ...refused(429, "Rate limit exceeded", "Too many requests in this second."), headers };
    },
    answer(request) {
      const [, resource = "", ...rest] = request.path.split("/");
      if (resource === "works" && rest.length === 0) return works(request);
      if (resource === "works") return single(request, rest.join("/"));
      if (resource === "rate-limit") return rateLimit(request, options.budgetsUsd ?? {});
      return NOT_FOUND;
    },
  };
}

/** A message instead of a list that cannot be read. */
function readList(params: URLSearchParams): List | string {
  const numberOf = (name: string) => (params.has(name) ? Number(params.get(name)) : undefined);
  const filter = readFilter(params.get("filter") ?? "");
  if (typeof filter === "string") return filter;
  const perPage = numberOf("per_page") ?? numberOf("per-page") ?? PER_PAGE_DEFAULT;
  if (!(perPage >= 1 && perPage <= PER_PAGE_MAX)) return `per-page parameter must be between 1 and ${PER_PAGE_MAX}`;
  const page = numberOf("page") ?? 1;
  if (!(page >= 1) || page * perPage > PAGED_MAX)
    return `Maximum results size of ${PAGED_MAX} records is exceeded. Cursor pagination is required for records beyond ${PAGED_MAX}.`;
  const select = params.get("select")?.split(",");
  const unknown = select?.find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) return unknownField(unknown);
  return {
    filter,
    search: params.get("search") ?? undefined,
    perPage,
    page,
    cursor: params.get("cursor") ?? undefined,
    sample: numberOf("sample"),
    select,
    groupBy: params.get("group_by") ?? undefined,
  };
}

function unknownField(name: string): string {
  return `${name} is not a valid select field. Valid fields for select are: ${FIELDS.join(", ")}.`;
}

/** By the day of publication, which does not change, then by id. */
function compare(
  one: Pick<SimulatedRecord, "published" | "id">,
  other: Pick<SimulatedRecord, "published" | "id">,
): number {
  return one.published - other.published || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0);
}

/** The sort values of a work, as the real cursors have them. */
function writeCursor({ published, id }: SimulatedRecord): string {
  return Buffer.from(JSON.stringify(`[${published}, '${id}']`)).toString("base64");
}

function readCursor(text: string): Pick<SimulatedRecord, "published" | "id"> | undefined {
  const [, published, id = ""] = /^"\[(-?\d+), '([^']+)'\]"$/.exec(Buffer.from(text, "base64").toString()) ?? [];
  return published === undefined ? undefined : { published: Number(published), id };
}

function written(
  list: List,
  count: number,
  works: readonly SimulatedRecord[],
  price: number,
  nextCursor?: string | null,
): Answer {
  const meta = metaOf(list, count, price, nextCursor);
  const texts = works.map(({ text }) => (list.select ? picked(text, list.select) : text));
  return ok(`{"meta":${JSON.stringify(meta)},"results":[${texts.join(",")}],"group_by":[]}`);
}

/** With groups there are no results at all. */
function grouped(list: List, found: readonly SimulatedRecord[], price: number): Answer {
  const counts = new Map<string, number>();
  for (const work of found) counts.set(typeOf(work), (counts.get(typeOf(work)) ?? 0) + 1);
  const groups = [...counts].map(([name, count]) => ({
    key: `https://openalex.org/types/${name}`,
    key_display_name: name,
    count,
  }));
  const meta = { ...metaOf(list, found.length, price, list.cursor && "Int0eXBlIg=="), groups_count: groups.length };
  return ok(JSON.stringify({ meta, group_by: groups }));
}

function metaOf(
  list: List,
  count: number,
  price: number,
  nextCursor: string | null | undefined,
): Record<string, unknown> {
  const { cursor, perPage, sample, filter } = list;
  const asked = {
    ...(filter.rows.length > 0 && { filter_rows: filter.rows }),
    ...(cursor !== undefined && { per_page: perPage, cursor }),
    ...(sample !== undefined && { sample }),
  };
  return {
    count,
    db_response_time_ms: 7,
    page: cursor === undefined ? list.page : null,
    per_page: perPage,
    ...(cursor === undefined ? {} : { next_cursor: nextCursor ?? null }),
    groups_count: null,
    x_query: { oql: "works", oqo: { get_rows: "works", ...asked }, url: "/works" },
    cost_usd: price / 1e6,
  };
}

function picked(text: string, names: readonly string[]): string {
  const work = Object.entries(JSON.parse(text) as Record<string, unknown>);
  return JSON.stringify(Object.fromEntries(work.filter(([name]) => names.includes(name))));
}

function ok(body: string): Answer {
  return { status: 200, type: JSON_TYPE, body };
}

const QUERY_ERROR = "Invalid query parameters error.";
const KEY_NEEDED = "Filters by the date of creation or update need an API key of a paid plan.";

function refused(status: number, error: string, message: string): Answer {
  return { status, type: JSON_TYPE, body: JSON.stringify({ error, message }) };
}

function spent(request: SourceRequest, purse: Purse, price: number): Answer {
  const answer = refused(
    429,
    "Rate limit exceeded",
    "Insufficient budget for this request. It resets at midnight UTC.",
  );
  const headers = {
    ...purse.headers(request, 0),
    "x-ratelimit-cost-required-usd": String(price / 1e6),
    "retry-after": String(purse.secondsToReset()),
  };
  return { ...answer, headers };
}

/** The real service repeats the key in its answer. */
function rateLimit(request: SourceRequest, budgetsUsd: Readonly<Record<string, number>>): Answer {
  const key = keyOf(request) ?? "";
  const budget = budgetsUsd[key];
  return budget === undefined
    ? refused(401, "Invalid or missing API key", "API key not found")
    : ok(JSON.stringify({ api_key: key, rate_limit: { daily_budget_usd: budget } }));
}

function movedTo({ id }: SimulatedRecord): Answer {
  const path = `/works/${id.split("/").at(-1)}`;
  return {
    status: 301,
    type: "text/html; charset=utf-8",
    headers: { location: path },
    body: "<h1>Redirecting...</h1>\n",
  };
}

const NOT_FOUND: Answer = {
  status: 404,
  type: "text/html; charset=utf-8",
  body:
    "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n<p>The requested URL was not found on " +
    "the server. If you entered the URL manually please check your spelling and try again.</p>\n",
};
