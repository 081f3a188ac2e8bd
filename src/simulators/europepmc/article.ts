/** One article as Europe PMC's JSON has it, in the three forms of `resultType`. */
import { dayOf, type SimulatedRecord } from "../common/records.ts";

type Article = Omit<SimulatedRecord, "text">;

const FIRST_ID = 38_000_000;
const OTHER_SOURCE_EVERY = 5;
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** `MED:38000007`. Every fifth article is of another source and has the id of the one before it: ids are unique in their source only. */
export function keyOf(ordinal: number): string {
  return ordinal % OTHER_SOURCE_EVERY === OTHER_SOURCE_EVERY - 1
    ? `AGR:${FIRST_ID + ordinal - 1}`
    : `MED:${FIRST_ID + ordinal}`;
}

export function sourceOf({ id }: Pick<Article, "id">): string {
  return id.slice(0, Math.max(0, id.indexOf(":")));
}

export function extIdOf({ id }: Pick<Article, "id">): string {
  return id.slice(id.indexOf(":") + 1);
}

export function citedByCountOf({ ordinal }: Pick<Article, "ordinal">): number {
  return ordinal % 50;
}

function identity(article: Article): Record<string, string> {
  return { id: extIdOf(article), source: sourceOf(article), pmid: String(FIRST_ID + article.ordinal) };
}

function flags({ ordinal }: Article): Record<string, string> {
  const isOpen = ordinal % 2 === 0 ? "Y" : "N";
  return {
    isOpenAccess: isOpen,
    inEPMC: isOpen,
    inPMC: "N",
    hasPDF: isOpen,
    hasBook: "N",
    hasSuppl: "N",
    hasReferences: "Y",
    hasTextMinedTerms: "N",
    hasDbCrossReferences: "N",
    hasLabsLinks: "Y",
    hasTMAccessionNumbers: "N",
  };
}

function dates(article: Article): Record<string, string> {
  return { firstIndexDate: dayOf(article.created), firstPublicationDate: dayOf(article.published) };
}

const author = ({ ordinal }: Article) => `Doe${ordinal % 1000} J`;
const doi = ({ ordinal }: Article) => `10.5555/millrace.${ordinal}`;

/** `resultType=idlist`. */
export function writeId(article: Article): string {
  return JSON.stringify(identity(article));
}

/** `resultType=lite`, the default. */
export function writeLite(article: Article): string {
  return JSON.stringify({
    ...identity(article),
    doi: doi(article),
    title: article.title,
    authorString: `${author(article)}.`,
    journalTitle: "J Simul Results",
    issue: "1",
    journalVolume: "7",
    pubYear: dayOf(article.published).slice(0, 4),
    journalIssn: "0000-0000; ",
    pageInfo: "1-9",
    pubType: "journal article",
    ...flags(article),
    citedByCount: citedByCountOf(article),
    ...dates(article),
  });
}

/** `resultType=core`. */
export function writeCore(article: Article): string {
  const [year = "", month = ""] = dayOf(article.published).split("-");
  const [firstName, lastName] = ["Jane", author(article).split(" ")[0]];
  const affiliation = "Institute of Simulated Results.";
  return JSON.stringify({
    ...identity(article),
    doi: doi(article),
    title: article.title,
    authorString: `${author(article)}.`,
    authorList: {
      author: [
        {
          fullName: author(article),
          firstName,
          lastName,
          initials: "J",
          authorAffiliationDetailsList: { authorAffiliation: [{ affiliation }] },
        },
      ],
    },
    journalInfo: {
      journalIssueId: 4_000_000,
      dateOfPublication: `${year} ${MONTHS[Number(month) - 1]}`,
      monthOfPublication: Number(month),
      yearOfPublication: Number(year),
      journal: {
        title: "Journal of Simulated Results",
        medlineAbbreviation: "J Simul Results",
        essn: "0000-0000",
        isoabbreviation: "J Simul Results",
        issn: "0000-0000",
        nlmid: "100000000",
      },
    },
    pubYear: year,
    abstractText: article.abstract,
    affiliation,
    publicationStatus: "ppublish",
    language: "eng",
    pubModel: "Electronic",
    pubTypeList: { pubType: ["Journal Article"] },
    keywordList: { keyword: ["simulation"] },
    fullTextUrlList: {
      fullTextUrl: [
        {
          availability: "Subscription required",
          availabilityCode: "S",
          documentStyle: "doi",
          site: "DOI",
          url: `https://doi.org/${doi(article)}`,
        },
      ],
    },
    ...flags(article),
    hasData: "N",
    hasEvaluations: "N",
    authMan: "N",
    epmcAuthMan: "N",
    nihAuthMan: "N",
    license: "cc by",
    citedByCount: citedByCountOf(article),
    dateOfCreation: dayOf(article.created),
    ...dates(article),
    dateOfRevision: dayOf(article.updated),
  });
}
