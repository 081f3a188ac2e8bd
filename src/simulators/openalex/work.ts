/** One work as OpenAlex's JSON has it. */
import { dayOf, type SimulatedRecord } from "../common/records.ts";

type Work = Omit<SimulatedRecord, "text">;

const HOST = "https://openalex.org";
const FIRST_NUMBER = 4_400_000_000;
const TYPES = ["article", "book-chapter", "preprint", "dataset"] as const;
const WITHOUT_ABSTRACT_EVERY = 10;
const INDEXED_WORDS_MAX = 400;

/** `https://openalex.org/W4400000007`. */
export function workIdOf(ordinal: number): string {
  return `${HOST}/W${FIRST_NUMBER + ordinal}`;
}

/** The id of `W123`, in any of the forms in which it is asked for. */
export function asWorkId(text: string): string {
  const [, number] = /^(?:https?:\/\/(?:api\.)?openalex\.org\/(?:works\/)?)?[wW](\d+)$/.exec(text) ?? [];
  return number === undefined ? text : `${HOST}/W${number}`;
}

export function doiOf({ ordinal }: Pick<Work, "ordinal">): string {
  return `https://doi.org/10.5555/millrace.${ordinal}`;
}

export function typeOf({ ordinal }: Pick<Work, "ordinal">): string {
  return TYPES[ordinal % TYPES.length] ?? TYPES[0];
}

/** The fields that `select` may name. */
export const FIELDS: readonly string[] = Object.keys(workOf({ ...emptyWork(), abstract: "" }));

export function writeWork(work: Work): string {
  return JSON.stringify(workOf(work));
}

function workOf(work: Work) {
  const { id, title, ordinal } = work;
  const location = {
    id: `doi:10.5555/millrace.${ordinal}`,
    is_oa: true,
    landing_page_url: doiOf(work),
    pdf_url: null,
    source: null,
    license: "cc-by",
    license_id: `${HOST}/licenses/cc-by`,
    version: "publishedVersion",
    is_accepted: true,
    is_published: true,
    raw_source_name: "Journal of Simulated Results",
    raw_type: "journal-article",
  };
  const topic = { id: "simulation", display_name: "Simulation", score: 0.5 };
  return {
    id,
    doi: doiOf(work),
    title,
    display_name: title,
    publication_year: Number(dayOf(work.published).slice(0, 4)),
    publication_date: dayOf(work.published),
    ids: { openalex: id, doi: doiOf(work) },
    language: "en",
    primary_location: location,
    type: typeOf(work),
    indexed_in: ["crossref"],
    open_access: { is_oa: true, oa_status: "gold", oa_url: doiOf(work), any_repository_has_fulltext: false },
    authorships: [
      {
        author_position: "first",
        author: {
          id: `${HOST}/A${5_000_000_000 + (ordinal % 1000)}`,
          display_name: `Jane Doe ${ordinal % 1000}`,
          orcid: null,
        },
        institutions: [],
        countries: [],
        is_corresponding: false,
        raw_author_name: `Jane Doe ${ordinal % 1000}`,
        raw_affiliation_strings: [],
        affiliations: [],
      },
    ],
    countries_distinct_count: 0,
    institutions_distinct_count: 0,
    corresponding_author_ids: [],
    corresponding_institution_ids: [],
    apc_list: null,
    apc_paid: null,
    fwci: null,
    cited_by_count: ordinal % 50,
    citation_normalized_percentile: null,
    cited_by_percentile_year: null,
    biblio: { volume: "7", issue: null, first_page: null, last_page: null },
    is_retracted: false,
    is_paratext: false,
    primary_topic: null,
    topics: [],
    keywords: [{ ...topic, id: `${HOST}/keywords/simulation` }],
    concepts: [{ ...topic, id: `${HOST}/C41008148`, wikidata: "https://www.wikidata.org/wiki/Q21198", level: 0 }],
    mesh: [],
    locations_count: 1,
    locations: [location],
    best_oa_location: location,
    sustainable_development_goals: [],
    referenced_works_count: 0,
    referenced_works: [],
    related_works: [],
    abstract_inverted_index: ordinal % WITHOUT_ABSTRACT_EVERY === 7 ? null : invertedIndex(work.abstract),
    counts_by_year: [],
    updated_date: microseconds(work.updated),
    created_date: microseconds(work.created),
  };
}

function emptyWork(): Work {
  const times = { created: 0, updated: 0, indexed: 0, published: 0 };
  return { id: "", ordinal: 0, version: 1, title: "", abstract: "", deleted: false, ...times };
}

/** Where each word stands. */
function invertedIndex(text: string): Record<string, number[]> {
  const index: Record<string, number[]> = {};
  for (const [place, word] of text.split(" ").slice(0, INDEXED_WORDS_MAX).entries()) {
    const places = (index[word] ??= []);
    places.push(place);
  }
  return index;
}

/** Without a zone, which is UTC. */
function microseconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 23)}000`;
}
