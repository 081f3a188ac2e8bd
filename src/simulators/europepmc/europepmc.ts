/**
 * A simulator of Europe PMC's search (`https://www.ebi.ac.uk/europepmc/webservices/rest`): queries by day, cursor marks, the three
 * result types, JSON and XML. What is wrong with a request is said with 200.
 */
import { isRecord } from "../../kernel/json/is-record.ts";
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
import { escaped } from "../common/xml.ts";
import { citedByCountOf, keyOf, writeCore, writeId, writeLite } from "./article.ts";
import { type Mark, readMark, writeMark } from "./marks.ts";
import { readQuery } from "./query.ts";

export const EUROPEPMC_FAULTS = [
  ...TRANSPORT_FAULTS,
  "duplicate-across-pages",
  "total-off-by-one",
  "token-on-last-page",
  "bare-version",
  "scalar-result",
  "empty-result-list",
] as const;

const BASE_PATH = "/europepmc/webservices/rest";
const VERSION = "6.9";
const PAGE_SIZE_DEFAULT = 25;
const PAGE_SIZE_MAX = 1000;
/** No limit is published, and no header states one. More than this in a second is refused here. */
const REQUESTS_PER_SECOND = 10;
const RELEVANCE = 17.026_301;
/** The values that lists can be sorted by; another name is answered with the version alone. */
const SORTS: Readonly<Record<string, (record: SimulatedRecord) => number>> = {
  CITED: citedByCountOf,
  P_PDATE_D: ({ published }) => published / 86_400_000,
  FIRST_IDATE_D: ({ created }) => Math.floor(created / 86_400_000),
};
const WRITERS: Readonly<Record<string, (record: SimulatedRecord) => string>> = {
  idlist: writeId,
  lite: writeLite,
  core: ({ text }) => text,
};

interface Search {
  query: string;
  resultType: string;
  format: string;
  pageSize: number;
  cursorMark: string;
  sort: string;
  page: number;
}

export function startEuropepmc(options: SimulatorOptions = {}): Promise<Simulator> {
  return startSimulator(
    {
      basePath: BASE_PATH,
      faults: EUROPEPMC_FAULTS,
      keepsDeleted: false,
      idOf: keyOf,
      write: writeCore,
      open: openEuropepmc,
    },
    options,
  );
}

function openEuropepmc({ store, random }: SourceContext): Source {
  function search(request: SourceRequest): Answer {
    const asked = readSearch(request.params);
    const respond = (body: Record<string, unknown>) => answerIn(asked.format, body);
    if (request.strikes("bare-version")) return respond({ version: VERSION });
    if (!(asked.pageSize >= 1 && asked.pageSize <= PAGE_SIZE_MAX))
      return respond(failure(`Invalid page size provided. Valid size is between 1 and ${PAGE_SIZE_MAX}`));
    const order = orderOf(asked.sort);
    const write = WRITERS[asked.resultType];
    const query = readQuery(asked.query);
    const after = asked.cursorMark === "*" ? undefined : readMark(asked.cursorMark, asked.sort !== "");
    if (!order || !write || !query || (asked.cursorMark !== "*" && !after)) return respond({ version: VERSION });

    const markOf = (record: SimulatedRecord): Mark => ({ value: order.value(record), ordinal: record.ordinal });
    const found = store
      .between(query.range?.field ?? "created", query.range ?? {})
      .filter(query.matches)
      .sort((one, other) => compare(order, markOf(one), markOf(other)));
    const behind = after ? found.findIndex((record) => compare(order, markOf(record), after) > 0) : 0;
    const first = after ? (behind < 0 ? found.length : behind) : (asked.page - 1) * asked.pageSize;
    const repeats = after && first > 0 && asked.pageSize > 1 && request.strikes("duplicate-across-pages");
    const start = repeats ? first - 1 : first;
    const items = found.slice(start, start + asked.pageSize);
    const last = items.at(-1);
    const isEnd = start + items.length >= found.length;
    // A mark behind the last page finds nothing, and comes back as it was sent.
    const next = last ? writeMark(markOf(last), asked.sort !== "") : after && asked.cursorMark;
    const hasNext = !last || !isEnd || request.strikes("token-on-last-page");
    const total = announcedTotal(request, random, found.length);
    return respond(written(request, asked, total, hasNext ? next : undefined, items.map(write)));
  }

  return {
    limitOf: ({ remoteAddress }) => ({ key: remoteAddress, requests: REQUESTS_PER_SECOND, intervalMs: SECOND_MS }),
    rateHeaders: () => ({}),
    tooMany: () => ({ status: 429, type: "text/html", body: "<html><body><h1>Too Many Requests</h1></body></html>\n" }),
    answer(request) {
      const path = request.path.slice(BASE_PATH.length);
      if (path === "/search" || path === "/searchPOST") return search(request);
      const article = /^\/(\w+)\/supplementaryFiles$/.exec(path)?.[1];
      const said = article === undefined ? "Not found" : `Article with id ${article} is not open access one`;
      const bean = `<errorBean><errCode>${article === undefined ? 404 : 0}</errCode><errMsg>${said}</errMsg></errorBean>`;
      return { status: 404, type: "application/xml", body: XML_DECLARATION + bean };
    },
  };
}

function readSearch(params: URLSearchParams): Search {
  return {
    query: params.get("query") ?? "",
    resultType: params.get("resultType") ?? "lite",
    format: params.get("format") ?? "xml",
    pageSize: Number(params.get("pageSize") ?? PAGE_SIZE_DEFAULT),
    cursorMark: params.get("cursorMark") ?? "*",
    sort: params.get("sort") ?? "",
    page: Math.max(1, Number(params.get("page") ?? 1)),
  };
}

interface Order {
  value: (record: SimulatedRecord) => number;
  direction: 1 | -1;
}

/** Undefined for a sort that there is not. */
function orderOf(sort: string): Order | undefined {
  if (sort === "") return { value: () => RELEVANCE, direction: -1 };
  const [, field = "", direction = "desc"] = /^(\w+)(?: (asc|desc))?$/.exec(sort) ?? [];
  const value = SORTS[field];
  return value && { value, direction: direction === "asc" ? 1 : -1 };
}

function compare({ direction }: Order, one: Mark, other: Mark): number {
  // A float of four bytes has seven digits.
  const difference = Math.fround(one.value) - Math.fround(other.value);
  return difference * direction || one.ordinal - other.ordinal;
}

function written(
  request: SourceRequest,
  asked: Search,
  hitCount: number,
  next: string | undefined,
  texts: readonly string[],
): Record<string, unknown> {
  const { query, resultType, pageSize, cursorMark, sort, format } = asked;
  const result = texts.map((text) => JSON.parse(text) as unknown);
  const list =
    result.length === 0 && request.strikes("empty-result-list")
      ? {}
      : { result: result.length === 1 && request.strikes("scalar-result") ? result[0] : result };
  const sorted = sort === "" ? "" : `&sort=${sort}`;
  const url = `https://www.ebi.ac.uk${BASE_PATH}/search?query=${query}&cursorMark=${next}&resultType=${resultType}&pageSize=${pageSize}${sorted}&format=${format}`;
  return {
    version: VERSION,
    hitCount,
    ...(next === undefined ? {} : { nextCursorMark: next, nextPageUrl: url }),
    request: { queryString: query, resultType, cursorMark, pageSize, sort, synonym: false },
    resultList: list,
  };
}

function failure(errMsg: string): Record<string, unknown> {
  return { errCode: 404, errMsg };
}

const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';

function answerIn(format: string, body: Record<string, unknown>): Answer {
  if (format === "json") return { status: 200, type: "application/json;charset=UTF-8", body: JSON.stringify(body) };
  const root = "errCode" in body ? "errorBean" : "responseWrapper";
  return { status: 200, type: "application/xml;charset=UTF-8", body: XML_DECLARATION + element(root, body) };
}

/** The members of a list are elements of its name. */
function element(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map((member) => element(name, member)).join("");
  const inner = isRecord(value)
    ? Object.entries(value)
        .map(([key, member]) => element(key, member))
        .join("")
    : escaped(String(value));
  return `<${name}>${inner}</${name}>`;
}
