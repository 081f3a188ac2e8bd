/** ESearch: which records match, as JSON whose numbers are texts or as XML, and never more than the first 9,999. */
import type { Clock } from "../../kernel/time/clock.ts";
import type { Random } from "../common/random.ts";
import type { RecordStore } from "../common/records.ts";
import { type Answer, announcedTotal, type SourceRequest } from "../common/source.ts";
import { escaped } from "../common/xml.ts";
import type { Sessions } from "./sessions.ts";
import { matches, readSearch, type Search } from "./term.ts";

/** PubMed gives only these first records of a query. */
export const CEILING = 9999;
const RETMAX_DEFAULT = 20;

export const TOO_FAR =
  "Search Backend failed: Exception:\n'retstart' cannot be larger than 9998. For PubMed, ESearch can only retrieve the first " +
  "9,999 records matching the query. To obtain more than 9,999 PubMed records, consider using EDirect that contains additional " +
  "logic to batch PubMed search results automatically so that an arbitrary number can be retrieved. For details see " +
  "https://www.ncbi.nlm.nih.gov/books/NBK25499/";

export interface ESearchContext {
  store: RecordStore;
  sessions: Sessions;
  clock: Clock;
  random: Random;
  /** How many records of a query there are. */
  ceiling: number;
  /** Words that PubMed does not find; they are in the errorlist, and the rest of the query counts. */
  unknownPhrases: readonly string[];
}

/** What both formats show. */
interface Found {
  count: number;
  retmax: number;
  retstart: number;
  ids: readonly string[];
  session: { webEnv: string; queryKey: string } | undefined;
  translations: Search["translations"];
  translation: string;
  phrasesNotFound: readonly string[];
  messages: readonly string[];
}

export function esearch(request: SourceRequest, context: ESearchContext): Answer {
  const { params } = request;
  const asJson = params.get("retmode") === "json";
  const error = (text: string) =>
    asJson ? jsonAnswer({ ERROR: text }) : xmlAnswer(`\n\t<ERROR>${escaped(text)}</ERROR>\n`);
  const db = params.get("db") ?? "pubmed";
  if (db !== "pubmed") return error(`Invalid db name specified: ${db}`);
  if ((params.get("term") ?? "").trim() === "") return error("Empty term and query_key - nothing todo");
  if (request.strikes("error-200")) return error("Search Backend failed: Exception:\nConnection to the index was lost");

  const search = readSearch(params, { now: context.clock.now(), unknownPhrases: context.unknownPhrases });
  const ids = idsOf(search, context.store);
  const total = announcedTotal(request, context.random, ids.length);
  if (params.get("rettype") === "count") {
    const count = String(total);
    return asJson ? jsonAnswer({ count }) : xmlAnswer(`<Count>${count}</Count>`);
  }
  const retstart = numberOf(params.get("retstart"), 0);
  const wanted = numberOf(params.get("retmax"), RETMAX_DEFAULT);
  if (retstart >= context.ceiling && ids.length > context.ceiling) return error(TOO_FAR);
  const found = page(ids, retstart, wanted, context.ceiling);
  const withDuplicate =
    retstart > 0 && found.ids.length > 0 && request.strikes("duplicate-across-pages")
      ? [...found.ids, ids[retstart - 1] ?? ""]
      : found.ids;
  const keep = params.get("usehistory") === "y";
  const result: Found = {
    ...found,
    count: total,
    ids: withDuplicate,
    session: keep ? context.sessions.keep(ids.slice(0, context.ceiling), params.get("WebEnv")) : undefined,
    translations: ids.length === 0 ? [] : search.translations,
    translation: search.translation,
    phrasesNotFound: search.phrasesNotFound,
  };
  return asJson ? asJsonResult(result) : asXmlResult(result);
}

/** Newest first, as PubMed's default order is for records of one day. */
function idsOf(search: Search, store: RecordStore): string[] {
  const first = search.ranges.find(({ label }) => label !== "Date - Entry");
  const field =
    first &&
    ({ "Date - Create": "created", "Date - Modification": "updated", "Date - Publication": "published" } as const)[
      first.label
    ];
  const candidates = store.between(field ?? "created", field ? { from: first.from, until: first.until } : {});
  const ids: string[] = [];
  for (let index = candidates.length - 1; index >= 0; index -= 1) {
    const record = candidates[index];
    if (record && matches(search, record)) ids.push(record.id);
  }
  return ids;
}

/** What is over the ceiling is cut without an error. */
function page(ids: readonly string[], retstart: number, wanted: number, ceiling: number) {
  const end = Math.min(retstart + wanted, ids.length, ceiling);
  const shown = ids.slice(retstart, Math.max(retstart, end));
  const isCut = Math.min(retstart + wanted, ids.length) > ceiling && wanted <= ceiling;
  const messages = ids.length === 0 ? ["No items found."] : [];
  if (isCut) messages.push(`Restrictions achieved. start and count adjusted to ${retstart}, ${shown.length}`);
  return {
    retmax: wanted > ceiling && ids.length > ceiling ? ceiling : shown.length,
    retstart,
    ids: shown,
    messages,
  };
}

function asJsonResult(found: Found): Answer {
  const { session, phrasesNotFound, messages } = found;
  return jsonAnswer({
    count: String(found.count),
    retmax: String(found.retmax),
    retstart: String(found.retstart),
    ...(session && { querykey: session.queryKey, webenv: session.webEnv }),
    idlist: found.ids,
    translationset: found.translations,
    querytranslation: found.translation,
    ...(phrasesNotFound.length > 0 && { errorlist: { phrasesnotfound: phrasesNotFound, fieldsnotfound: [] } }),
    ...(messages.length > 0 && {
      warninglist: { phrasesignored: [], quotedphrasesnotfound: [], outputmessages: messages },
    }),
  });
}

/** The order is that of the DTD. */
function asXmlResult(found: Found): Answer {
  const { session, phrasesNotFound, messages } = found;
  const list = (name: string, tag: string, texts: readonly string[]) =>
    texts.length === 0 ? "" : `<${name}>${texts.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join("")}</${name}>`;
  return xmlAnswer(
    `<Count>${found.count}</Count><RetMax>${found.retmax}</RetMax><RetStart>${found.retstart}</RetStart>` +
      (session ? `<QueryKey>${session.queryKey}</QueryKey><WebEnv>${session.webEnv}</WebEnv>` : "") +
      `<IdList>\n${found.ids.map((id) => `<Id>${id}</Id>\n`).join("")}</IdList>${translationSet(found.translations)}` +
      `<QueryTranslation>${escaped(found.translation)}</QueryTranslation>` +
      list("ErrorList", "PhraseNotFound", phrasesNotFound) +
      list("WarningList", "OutputMessage", messages),
  );
}

function translationSet(translations: Search["translations"]): string {
  if (translations.length === 0) return "<TranslationSet/>";
  const each = translations.map(
    ({ from, to }) => `<Translation>     <From>${escaped(from)}</From>     <To>${escaped(to)}</To>    </Translation>`,
  );
  return `<TranslationSet>${each.join("")}</TranslationSet>`;
}

function jsonAnswer(result: unknown): Answer {
  const body = JSON.stringify({ header: { type: "esearch", version: "0.3" }, esearchresult: result });
  return { status: 200, type: "application/json; charset=UTF-8", body };
}

function xmlAnswer(content: string): Answer {
  const body =
    '<?xml version="1.0" encoding="UTF-8" ?>\n<!DOCTYPE eSearchResult PUBLIC "-//NLM//DTD esearch 20060628//EN" ' +
    `"https://eutils.ncbi.nlm.nih.gov/eutils/dtd/20060628/esearch.dtd">\n<eSearchResult>${content}</eSearchResult>\n`;
  return { status: 200, type: "text/xml; charset=UTF-8", body };
}

export function numberOf(text: string | null, fallback: number): number {
  return text !== null && /^\d+$/.test(text) ? Number(text) : fallback;
}
