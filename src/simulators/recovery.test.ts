/**
 * No fault of a simulator loses a record for good: with all of them at random, a client that starts a list again at every doubt
 * has everything in the end. So a harvester that has not, has lost it.
 */
import { expect, test } from "vitest";
import {
  articles,
  articlesOf,
  esearch,
  get,
  oai,
  openalexWorks,
  opened,
  pmids,
  query,
  works,
} from "./clients.fixture.ts";
import { SIMULATORS, type Simulator } from "./index.ts";

const PROBABILITY = 0.04;
/** Those after which the data are others, so that one pass cannot have them all. They end, or the list would outgrow its client. */
const CHANGING = ["late-arrival", "update-during-paging"];
const PASSES_MAX = 500;
const DAY = "2026-08-20";
const WINDOW = { from: DAY, to: "2026-08-21" };
const options = {
  days: [DAY],
  recordsPerDay: 60,
  unlimited: true,
  faultDelayMs: 2,
  pageSize: 20,
  completeListSize: true,
};

type Titles = Map<string, string>;

/** Throws, or answers less than everything, if anything is in doubt. */
const passes: Record<string, (simulator: Simulator) => Promise<{ titles: Titles; total: number }>> = {
  async crossref(simulator) {
    const titles: Titles = new Map();
    const params = { filter: `from-update-date:${DAY},until-update-date:${DAY}`, rows: 20 };
    for (let cursor = "*"; ; ) {
      const { message } = await works(simulator, { ...params, cursor });
      for (const { DOI, title } of message.items) titles.set(DOI, title[0] ?? "");
      if (message.items.length === 0) return { titles, total: message["total-results"] };
      cursor = message["next-cursor"] ?? "";
    }
  },
  async pubmed(simulator) {
    const term = `${DAY.replaceAll("-", "/")}[crdt]`;
    const { count, webenv = "", querykey = "" } = await esearch(simulator, { term, usehistory: "y", retmax: 0 });
    const titles: Titles = new Map();
    for (let retstart = 0; retstart < Number(count); retstart += 20) {
      const params = query({ db: "pubmed", WebEnv: webenv, query_key: querykey, retstart, retmax: 20 });
      const { status, text } = await get(`${simulator.baseUrl}/efetch.fcgi?${params}`);
      if (status !== 200) throw new Error(text);
      const found = [...text.matchAll(/<ArticleTitle[^>]*>([^<]*)</g)].map(([, title = ""]) => decoded(title));
      for (const [index, id] of pmids(text).entries()) titles.set(id, found[index] ?? "");
    }
    return { titles, total: Number(count) };
  },
  async europepmc(simulator) {
    const titles: Titles = new Map();
    const params = { query: `UPDATE_DATE:[${DAY} TO ${DAY}]`, pageSize: 20 };
    await articles(simulator, { query: "UPDATE_DATE:1999-01-01" }); // A list of none, and one of one.
    const { hitCount } = await articles(simulator, { ...params, pageSize: 1 });
    for (let cursorMark = "*"; ; ) {
      const page = await articles(simulator, { ...params, cursorMark });
      if (page.hitCount === undefined) throw new Error("no result");
      for (const { source, id, title } of articlesOf(page)) titles.set(`${source}:${id}`, title);
      if (articlesOf(page).length === 0 || page.nextCursorMark === undefined) return { titles, total: hitCount };
      cursorMark = page.nextCursorMark;
    }
  },
  async openalex(simulator) {
    const titles: Titles = new Map();
    const filter = `from_updated_date:${DAY},to_updated_date:${DAY}T23:59:59.999999`;
    await get(`${simulator.baseUrl}/works/W4400000000?api_key=KEY`);
    for (let cursor = "*"; ; ) {
      const { meta, results } = await openalexWorks(simulator, { filter, cursor, per_page: 20 });
      for (const { id, title } of results) titles.set(id, title);
      if (!meta.next_cursor) return { titles, total: meta.count };
      cursor = meta.next_cursor;
    }
  },
  async arxiv(simulator) {
    const titles: Titles = new Map();
    let params: Record<string, string> = { verb: "ListRecords", metadataPrefix: "arXiv", from: DAY, until: DAY };
    for (;;) {
      const page = await oai(simulator, params);
      if (page.error === "noRecordsMatch" && titles.size > 0) return { titles, total: titles.size };
      if (page.status !== 200 || page.error !== undefined || !page.text.endsWith("</OAI-PMH>"))
        throw new Error(page.text);
      for (const [index, id] of page.identifiers.entries()) titles.set(id, decoded(page.titles[index] ?? ""));
      if (!page.token) return { titles, total: titles.size };
      params = { verb: "ListRecords", resumptionToken: page.token };
    }
  },
};

function decoded(text: string): string {
  const entities: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"' };
  return text.replaceAll(/&\w+;/g, (entity) => entities[entity] ?? entity);
}

/** The first pass that is complete by the source's own count. */
async function harvest(simulator: Simulator, pass: (typeof passes)[string]): Promise<Titles> {
  for (let count = 0; count < PASSES_MAX; count += 1) {
    try {
      const { titles, total } = await pass(simulator);
      if (titles.size === total) return titles;
    } catch {
      // The list is in doubt: from the start.
    }
  }
  throw new Error(`not complete after ${PASSES_MAX} passes`);
}

const cases = Object.keys(SIMULATORS).flatMap((name) => [1, 2].map((seed) => ({ name, seed })));

test.each(cases)("$name gives everything under all its faults, with seed $seed", async ({ name, seed }) => {
  const [kind, pass] = [SIMULATORS[name], passes[name]];
  if (!kind || !pass) throw new Error(`there is no client of ${name}`);
  const simulator = await opened(kind.start({ ...options, seed }));
  const often = (fault: string) => (CHANGING.includes(fault) ? { next: 3, after: 5 } : PROBABILITY);
  simulator.faults.set(Object.fromEntries(kind.faults.map((fault) => [fault, often(fault)])));
  do await harvest(simulator, pass);
  while (Object.values(simulator.faults.table()).some(({ struck }) => struck === 0));
  // What has changed meanwhile is in a later pass.
  simulator.faults.set(Object.fromEntries(CHANGING.map((fault) => [fault, 0])));
  const titles = await harvest(simulator, pass);
  expect(Object.fromEntries(titles)).toEqual(
    Object.fromEntries(simulator.records(WINDOW).map(({ id, content }) => [id, content])),
  );
});
