/** EFetch and EPost: the records of given ids or of a session as XML. Ids that PubMed does not have are absent without a word. */
import type { RecordStore } from "../common/records.ts";
import type { Answer, SourceRequest } from "../common/source.ts";
import { escaped } from "../common/xml.ts";
import { CEILING, numberOf, TOO_FAR } from "./esearch.ts";
import type { Sessions } from "./sessions.ts";

const RETMAX_DEFAULT = 20;
const NEVER_ASKED = "23203860";
const XML_TYPE = "text/xml; charset=UTF-8";
const HEAD =
  '<?xml version="1.0" ?>\n<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" ' +
  '"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n<PubmedArticleSet>\n';

export interface EFetchContext {
  store: RecordStore;
  sessions: Sessions;
}

export function efetch(request: SourceRequest, { store, sessions }: EFetchContext): Answer {
  if (request.strikes("timeout-400"))
    return fetchError(" Error: External viewer error: Empty Response. Bytes read: 0 Status: Timeout");
  const wanted = wantedIds(request, sessions);
  if (!Array.isArray(wanted)) return wanted;
  const texts = wanted.flatMap((id) => store.find(id)?.text ?? []);
  if (texts.length > 0 && request.strikes("missing-pmid")) texts.pop();
  if (texts.length > 0 && request.strikes("duplicate-across-pages")) texts.push(texts[0] ?? "");
  if (request.strikes("delete-citation")) texts.push(deleteCitation(wanted.filter((id) => !store.find(id))));
  return { status: 200, type: XML_TYPE, body: `${HEAD}${texts.join("\n")}\n</PubmedArticleSet>` };
}

/** As at the end of NLM's update files: those of the ids that are gone, and one that nobody asked for. */
function deleteCitation(gone: readonly string[]): string {
  const ids = [...gone, NEVER_ASKED].map((id) => `<PMID Version="1">${escaped(id)}</PMID>`);
  return `<DeleteCitation>${ids.join("")}</DeleteCitation>`;
}

function wantedIds({ params, strikes }: SourceRequest, sessions: Sessions): string[] | Answer {
  const ids = idsIn(params);
  const [webEnv, queryKey] = [params.get("WebEnv"), params.get("query_key")];
  if (webEnv === null || queryKey === null) return ids;
  if (strikes("token-expiry")) sessions.forget(webEnv);
  const kept = sessions.find(webEnv, queryKey);
  if (!kept) return fetchError(`Unable to obtain query #${queryKey}`);
  const retstart = numberOf(params.get("retstart"), 0);
  if (retstart >= CEILING) return fetchError(TOO_FAR);
  return kept.slice(retstart, retstart + numberOf(params.get("retmax"), RETMAX_DEFAULT));
}

export function epost({ params }: SourceRequest, sessions: Sessions): Answer {
  const db = params.get("db") ?? "pubmed";
  const result = (content: string) => ({
    status: 200,
    type: XML_TYPE,
    body:
      '<?xml version="1.0" encoding="UTF-8" ?>\n<!DOCTYPE ePostResult PUBLIC "-//NLM//DTD epost 20090526//EN" ' +
      `"https://eutils.ncbi.nlm.nih.gov/eutils/dtd/20090526/epost.dtd">\n<ePostResult>\n${content}</ePostResult>\n`,
  });
  if (db !== "pubmed") return result(`\t<ERROR>Invalid db name specified: ${escaped(db)}</ERROR>\n`);
  const { webEnv, queryKey } = sessions.keep(idsIn(params), params.get("WebEnv"));
  return result(`\t<QueryKey>${queryKey}</QueryKey>\n\t<WebEnv>${webEnv}</WebEnv>\n`);
}

/** Separated by commas, or repeated parameters. */
function idsIn(params: URLSearchParams): string[] {
  return params
    .getAll("id")
    .flatMap((list) => list.split(","))
    .map((id) => id.trim())
    .filter((id) => id !== "");
}

/** EFetch says its errors with HTTP 400, where ESearch says them with 200. */
function fetchError(text: string): Answer {
  const body =
    '<?xml version="1.0" encoding="UTF-8" ?>\n<!DOCTYPE eEfetchResult PUBLIC "-//NLM//DTD efetch 20131226//EN" ' +
    `"https://eutils.ncbi.nlm.nih.gov/eutils/dtd/20131226/efetch.dtd">\n<eFetchResult>\n\t<ERROR>${escaped(text)}</ERROR>\n</eFetchResult>\n`;
  return { status: 400, type: XML_TYPE, body };
}
