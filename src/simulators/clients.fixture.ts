/** Plain clients of the simulated APIs, as simple as they can be: a harvester that fails at a fault is for other tests. */
import { onTestFinished } from "vitest";
import type { Simulator } from "./index.ts";

/** Closed when the test ends. */
export async function opened(starting: Promise<Simulator>): Promise<Simulator> {
  const simulator = await starting;
  onTestFinished(() => simulator.close());
  return simulator;
}

export interface Page {
  status: number;
  headers: Headers;
  text: string;
}

export async function get(url: string, headers: Record<string, string> = {}): Promise<Page> {
  const response = await fetch(url, { headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

export async function post(url: string, form: Record<string, string>): Promise<Page> {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams(form) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

export function query(params: Record<string, string | number>): string {
  const texts = Object.entries(params).map(([name, value]) => [name, String(value)] as const);
  return new URLSearchParams(Object.fromEntries(texts)).toString();
}

export interface Works {
  status: string;
  message: { "total-results": number; "next-cursor"?: string; items: Work[] };
}

interface Work {
  DOI: string;
  title: string[];
  deposited: { "date-time": string };
}

export async function works(simulator: Simulator, params: Record<string, string | number>): Promise<Works> {
  const { text } = await get(`${simulator.baseUrl}/works?${query(params)}`);
  return JSON.parse(text) as Works;
}

/** All pages of a list, by its cursor until a page is empty. */
export async function allWorks(simulator: Simulator, params: Record<string, string | number>): Promise<Work[][]> {
  const pages: Work[][] = [];
  for (let cursor = "*"; ; ) {
    const { message } = await works(simulator, { ...params, cursor });
    if (message.items.length === 0) return pages;
    pages.push(message.items);
    cursor = message["next-cursor"] ?? "";
  }
}

export interface OaiPage extends Page {
  identifiers: string[];
  deleted: string[];
  titles: string[];
  /** Undefined if there is no element, empty on the last page. */
  token: string | undefined;
  error: string | undefined;
}

export async function oai(simulator: Simulator, params: Record<string, string | number>): Promise<OaiPage> {
  const page = await get(`${simulator.baseUrl}/oai?${query(params)}`);
  const all = (pattern: RegExp) => [...page.text.matchAll(pattern)].map(([, found = ""]) => found);
  const token = /<resumptionToken[^>]*?(?:\/>|>([^<]*)<\/resumptionToken>)/.exec(page.text);
  return {
    ...page,
    identifiers: all(/<identifier>oai:arXiv\.org:([^<]+)</g),
    deleted: all(/<header status="deleted"><identifier>oai:arXiv\.org:([^<]+)</g),
    titles: all(/<title>([^<]*)</g),
    token: token ? (token[1] ?? "") : undefined,
    error: /<error code='(\w+)'/.exec(page.text)?.[1],
  };
}

/** All pages of a list, by its tokens. */
export async function allOai(simulator: Simulator, params: Record<string, string>): Promise<OaiPage[]> {
  const pages = [await oai(simulator, params)];
  for (let token = pages[0]?.token; token; token = pages.at(-1)?.token)
    pages.push(await oai(simulator, { verb: params["verb"] ?? "", resumptionToken: token }));
  return pages;
}

export interface ESearch {
  ERROR?: string;
  count: string;
  retmax: string;
  idlist: string[];
  webenv?: string;
  querykey?: string;
  warninglist?: { outputmessages: string[] };
  errorlist?: { phrasesnotfound: string[] };
}

export async function esearch(simulator: Simulator, params: Record<string, string | number>): Promise<ESearch> {
  const url = `${simulator.baseUrl}/esearch.fcgi?${query({ db: "pubmed", retmode: "json", ...params })}`;
  return (JSON.parse((await get(url)).text) as { esearchresult: ESearch }).esearchresult;
}

/** The PMIDs of the records in an answer of EFetch. */
export function pmids(text: string): string[] {
  return [...text.matchAll(/<PMID Version="1">(\d+)</g)].map(([, id = ""]) => id);
}

export interface Article {
  id: string;
  source: string;
  title: string;
  [field: string]: unknown;
}

export interface Articles {
  hitCount: number;
  nextCursorMark?: string;
  resultList: { result?: Article | Article[] };
  errMsg?: string;
}

export async function articles(simulator: Simulator, params: Record<string, string | number>): Promise<Articles> {
  const url = `${simulator.baseUrl}/search?${query({ format: "json", resultType: "core", ...params })}`;
  return JSON.parse((await get(url)).text) as Articles;
}

/** The articles of a page, however the service writes a list of one or none. */
export function articlesOf({ resultList: { result = [] } }: Articles): Article[] {
  return Array.isArray(result) ? result : [result];
}

/** All pages of a search, by its marks until there is none, or a page is empty. */
export async function allArticles(simulator: Simulator, params: Record<string, string | number>): Promise<Article[][]> {
  const pages: Article[][] = [];
  for (let cursorMark: string | undefined = "*"; cursorMark !== undefined; ) {
    const page = await articles(simulator, { ...params, cursorMark });
    const found = articlesOf(page);
    if (found.length === 0) return pages;
    pages.push(found);
    cursorMark = page.nextCursorMark;
  }
  return pages;
}

export interface OpenalexWorks {
  meta: { count: number; next_cursor: string | null; page: number | null; cost_usd: number };
  results: { id: string; title: string; [field: string]: unknown }[];
}

export async function openalexWorks(
  simulator: Simulator,
  params: Record<string, string | number>,
): Promise<OpenalexWorks> {
  const { status, text } = await get(`${simulator.baseUrl}/works?${query({ api_key: "KEY", ...params })}`);
  if (status !== 200) throw new Error(`${status}: ${text}`);
  return JSON.parse(text) as OpenalexWorks;
}

/** All pages of a list, by its cursor until there is none. */
export async function allOpenalexWorks(
  simulator: Simulator,
  params: Record<string, string | number>,
): Promise<OpenalexWorks["results"][]> {
  const pages: OpenalexWorks["results"][] = [];
  for (let cursor: string | null = "*"; cursor !== null; ) {
    const { meta, results }: OpenalexWorks = await openalexWorks(simulator, { ...params, cursor });
    pages.push(results);
    cursor = meta.next_cursor;
  }
  return pages;
}
