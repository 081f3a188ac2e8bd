/** A simulator of the Crossref REST API (`https://api.crossref.org`): lists of works, single works, filters, cursors and pools. */
import { SECOND_MS } from "../../kernel/time/units.ts";
import type { SimulatedRecord } from "../common/records.ts";
import {
  type Simulator,
  type SimulatorOptions,
  type SourceContext,
  startSimulator,
  TRANSPORT_FAULTS,
} from "../common/simulator.ts";
import { type Answer, announcedTotal, type KeyedLimit, type Source, type SourceRequest } from "../common/source.ts";
import { doiOf, writeItem } from "./item.ts";
import { type Failure, integerFailure, readQuery, type WorksQuery } from "./query.ts";
import { createScrolls, type Scroll } from "./scrolls.ts";

export interface CrossrefOptions extends SimulatorOptions {
  /** How long a scroll lives after its last request. */
  scrollIdleMs?: number;
  /** The status for a token that is not known; some saw 400. */
  unknownTokenStatus?: 404 | 400;
}

export const CROSSREF_FAULTS = [
  ...TRANSPORT_FAULTS,
  "duplicate-across-pages",
  "short-page",
  "total-off-by-one",
  "order-shuffle",
  "header-change",
  "token-expiry",
] as const;

const SCROLL_IDLE_MS = 5 * 60_000;
const JSON_TYPE = "application/json";

export function startCrossref(options: CrossrefOptions = {}): Promise<Simulator> {
  return startSimulator(
    {
      basePath: "",
      faults: CROSSREF_FAULTS,
      keepsDeleted: false,
      idOf: doiOf,
      write: writeItem,
      open: (context) => openCrossref(context, options),
    },
    options,
  );
}

function openCrossref({ store, random, clock }: SourceContext, options: CrossrefOptions): Source {
  const scrolls = createScrolls({ clock, random, idleMs: options.scrollIdleMs ?? SCROLL_IDLE_MS });

  function works(request: SourceRequest): Answer {
    const { query, failures } = readQuery(request.params);
    if (failures.length > 0) return failed(400, "validation-failure", failures);
    if (query.cursor !== undefined && query.cursor !== "*") return nextOfScroll(request, query, query.cursor);
    const found = select(query);
    const total = announcedTotal(request, random, found.length);
    if (query.sample > 0) return list(query, total, random.shuffled(found).slice(0, query.sample));
    const ordered = request.strikes("order-shuffle") ? random.shuffled(found) : found;
    if (query.cursor === undefined)
      return list(query, total, page(request, ordered.slice(query.offset, query.offset + query.rows)));
    if (query.rows === 0) return list(query, total, [], "*");
    return pageOfScroll(request, query, scrolls.begin(ordered), total);
  }

  function nextOfScroll(request: SourceRequest, query: WorksQuery, token: string): Answer {
    if (request.strikes("token-expiry")) scrolls.forget(token);
    const scroll = scrolls.find(token);
    if (scroll) return pageOfScroll(request, query, scroll, announcedTotal(request, random, scroll.works.length));
    const failure = { type: "cursor-invalid", value: token, message: "Cursor specified but it is invalid" };
    return failed(options.unknownTokenStatus ?? 404, "resource-failure", [failure]);
  }

  /** The scroll moves on here, so that an answer that is lost on its way is lost for good. */
  function pageOfScroll(request: SourceRequest, query: WorksQuery, scroll: Scroll, total: number): Answer {
    const repeats = scroll.position > 0 && query.rows > 1 && request.strikes("duplicate-across-pages");
    const start = repeats ? scroll.position - 1 : scroll.position;
    const items = page(request, scroll.works.slice(start, start + query.rows));
    scroll.position = start + items.length;
    return list(query, total, items, scroll.token);
  }

  function select({ bounds, conditions }: WorksQuery): readonly SimulatedRecord[] {
    const field = bounds[0]?.field ?? "updated";
    const from = Math.max(...bounds.flatMap((bound) => (bound.field === field ? (bound.from ?? []) : [])));
    const until = Math.min(...bounds.flatMap((bound) => (bound.field === field ? (bound.until ?? []) : [])));
    const others = bounds.filter((bound) => bound.field !== field);
    const inTime = store.between(field, { from, until });
    if (conditions.length === 0 && others.length === 0) return inTime;
    return inTime.filter(
      (record) =>
        conditions.every((holds) => holds(record)) &&
        others.every(
          (bound) =>
            record[bound.field] >= (bound.from ?? -Infinity) && record[bound.field] <= (bound.until ?? Infinity),
        ),
    );
  }

  return {
    limitOf: poolOf,
    rateHeaders: (_, limit) => ({ "access-control-expose-headers": "Link", ...headersOf(limit) }),
    tooMany: () => ({ status: 429, type: "text/html", headers: TOO_MANY_HEADERS, body: TOO_MANY }),
    answer(request) {
      const [, resource = "", ...rest] = request.path.replace(/^\/v1(?=\/)/, "").split("/");
      const isList = /^(types|members|funders|journals|prefixes)$/.test(resource) && rest.at(-1) === "works";
      if (isList || (resource === "works" && rest.length === 0)) return works(request);
      if (resource === "works") return single(store.find(rest.join("/").toLowerCase()));
      if (resource === "funders" || resource === "journals" || resource === "members")
        return otherList(resource, request.params);
      return NOT_FOUND;
    },
  };
}

/** One record less, if the fault strikes and something is left. */
function page(request: SourceRequest, items: readonly SimulatedRecord[]): readonly SimulatedRecord[] {
  return items.length > 1 && request.strikes("short-page") ? items.slice(0, -1) : items;
}

function list(query: WorksQuery, total: number, items: readonly SimulatedRecord[], token?: string): Answer {
  const facet = { "value-count": 1, values: { "https://www.example.org/all": total } };
  const facets = JSON.stringify(Object.fromEntries(query.facets.map((name) => [name, facet])));
  const next = token === undefined ? "" : `"next-cursor":${JSON.stringify(token)},`;
  const texts = query.select
    ? items.map(({ text }) => picked(text, query.select ?? []))
    : items.map(({ text }) => text);
  const search = JSON.stringify({ "start-index": query.offset, "search-terms": query.searchTerms });
  return ok(
    "work-list",
    `{"facets":${facets},${next}"total-results":${total},"items":[${texts.join(",")}],` +
      `"items-per-page":${query.rows},"query":${search}}`,
  );
}

function picked(text: string, names: readonly string[]): string {
  const item = Object.entries(JSON.parse(text) as Record<string, unknown>);
  return JSON.stringify(Object.fromEntries(item.filter(([name]) => names.includes(name))));
}

function single(record: SimulatedRecord | undefined): Answer {
  return record ? ok("work", record.text) : NOT_FOUND;
}

function ok(type: string, message: string): Answer {
  const body = `{"status":"ok","message-type":"${type}","message-version":"1.0.0","message":${message}}`;
  return { status: 200, type: JSON_TYPE, body };
}

function failed(status: number, type: string, failures: readonly Failure[]): Answer {
  const body = JSON.stringify({ status: "failed", "message-type": type, message: failures });
  return { status, type: status === 400 ? "application/json;charset=utf-8" : JSON_TYPE, body };
}

/** The lists of funders, journals and members are empty; what they refuse is as recorded. */
function otherList(resource: "funders" | "journals" | "members", params: URLSearchParams): Answer {
  const failures: Failure[] = [];
  const rows = params.get("rows") ?? "20";
  if (!/^\d+$/.test(rows) || Number(rows) > 1000) failures.push(integerFailure(rows, 1000));
  const filter = params.get("filter")?.split(":")[0];
  if (filter !== undefined && resource === "journals") failures.push(notAllowed("filter"));
  if (filter !== undefined && resource === "funders" && filter !== "location")
    failures.push({
      type: "filter-not-available",
      value: filter,
      message: `Filter '${filter}' specified but there is no such filter for this route. Valid filters for this route are: location`,
    });
  if (params.has("sort")) failures.push(notAllowed("sort"));
  if (failures.length > 0) return failed(400, "validation-failure", failures);
  return ok(
    `${resource.slice(0, -1)}-list`,
    `{"items-per-page":${rows},"query":{"start-index":0,"search-terms":null},"total-results":0,"items":[]}`,
  );
}

function notAllowed(name: string): Failure {
  return { type: "parameter-not-allowed", value: name, message: `This route does not support ${name}` };
}

const NOT_FOUND: Answer = { status: 404, type: "text/plain", body: "Resource not found." };
const TOO_MANY_HEADERS = { "cache-control": "no-cache", connection: "close" };
const TOO_MANY =
  "<html><body><h1>429 Too Many Requests</h1>\nYou have sent too many requests in a given amount of time.\n</body></html>\n";

interface Pool extends KeyedLimit {
  pool: string;
}

/** As of July 2026: who names an address is polite, and polite lists have fewer requests than polite single works. */
function poolOf(request: SourceRequest): Pool {
  const token = request.headers["crossref-plus-api-token"];
  if (token !== undefined) return pool("plus", String(token), 150);
  const address = request.params.get("mailto") ?? /mailto:([^\s;)]+)/.exec(request.headers["user-agent"] ?? "")?.[1];
  if (address === undefined) return pool("public", request.remoteAddress, 5, 1);
  const isSingle = /^\/works\/./.test(request.path);
  return isSingle ? pool("polite-single", address, 10, 3) : pool("polite-array", address, 3, 3);
}

function pool(name: string, caller: string, requests: number, concurrency?: number): Pool {
  return { pool: name, key: `${name} ${caller}`, requests, intervalMs: SECOND_MS, concurrency };
}

function headersOf(limit: KeyedLimit): Record<string, string> {
  const [name = ""] = limit.key.split(" ");
  return {
    "x-api-pool": name,
    ...(limit.concurrency === undefined ? {} : { "x-concurrency-limit": String(limit.concurrency) }),
    "x-rate-limit-interval": `${limit.intervalMs / SECOND_MS}s`,
    "x-rate-limit-limit": String(limit.requests),
  };
}
