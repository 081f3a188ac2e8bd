/** One record as EFetch's XML has it: an article, or every so often a chapter of a book. */
import { dayOf, type SimulatedRecord } from "../common/records.ts";
import { escaped } from "../common/xml.ts";

const FIRST_PMID = 40_000_001;
const BOOK_EVERY = 40;
const MEDLINE_DATE_EVERY = 15;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export function pmidOf(ordinal: number): string {
  return String(FIRST_PMID + ordinal);
}

export function writeArticle(record: Omit<SimulatedRecord, "text">): string {
  return record.ordinal % BOOK_EVERY === BOOK_EVERY - 1 ? bookArticle(record) : article(record);
}

function article(record: Omit<SimulatedRecord, "text">): string {
  const { id, ordinal, version, title } = record;
  return (
    `<PubmedArticle><MedlineCitation Status="PubMed-not-MEDLINE" Owner="NLM"><PMID Version="1">${id}</PMID>` +
    (version > 1 ? `<DateCompleted>${date(record.created)}</DateCompleted>` : "") +
    `<DateRevised>${date(record.updated)}</DateRevised><Article PubModel="Electronic"><Journal>` +
    `<ISSN IssnType="Electronic">1533-4406</ISSN><JournalIssue CitedMedium="Internet"><Volume>${1 + (ordinal % 400)}</Volume>` +
    `<Issue>2</Issue><PubDate>${pubDate(record)}</PubDate></JournalIssue><Title>Journal of simulated medicine</Title>` +
    `<ISOAbbreviation>J Simul Med</ISOAbbreviation></Journal><ArticleTitle>${escaped(title)}</ArticleTitle>` +
    `<ELocationID EIdType="doi" ValidYN="Y">10.5555/pm.${id}</ELocationID><Abstract>` +
    `<AbstractText Label="METHODS" NlmCategory="METHODS">Area 1.73 m<sup>2</sup>: ${escaped(record.abstract)}</AbstractText></Abstract>` +
    `<AuthorList CompleteYN="Y"><Author ValidYN="Y"><LastName>Doe</LastName><ForeName>Jane</ForeName><Initials>J</Initials>` +
    `</Author></AuthorList><Language>eng</Language><PublicationTypeList><PublicationType UI="D016428">Journal Article` +
    `</PublicationType></PublicationTypeList></Article><MedlineJournalInfo><Country>United States</Country>` +
    `<MedlineTA>J Simul Med</MedlineTA><NlmUniqueID>0255562</NlmUniqueID><ISSNLinking>0028-4793</ISSNLinking>` +
    `</MedlineJournalInfo></MedlineCitation><PubmedData><History><PubMedPubDate PubStatus="pubmed">${historyDate(record.created)}` +
    `</PubMedPubDate><PubMedPubDate PubStatus="entrez">${historyDate(entered(record))}</PubMedPubDate></History>` +
    `<PublicationStatus>epublish</PublicationStatus><ArticleIdList><ArticleId IdType="pubmed">${id}</ArticleId>` +
    `<ArticleId IdType="doi">10.5555/pm.${id}</ArticleId></ArticleIdList></PubmedData></PubmedArticle>`
  );
}

function bookArticle(record: Omit<SimulatedRecord, "text">): string {
  const { id, title } = record;
  return (
    `<PubmedBookArticle><BookDocument><PMID Version="1">${id}</PMID><ArticleIdList><ArticleId IdType="bookaccession">NBK${id}` +
    `</ArticleId></ArticleIdList><Book><Publisher><PublisherName>Simulated Press</PublisherName><PublisherLocation>Nowhere` +
    `</PublisherLocation></Publisher><BookTitle book="gene">SimReviews<sup>®</sup></BookTitle><PubDate>` +
    `<Year>${dayOf(record.published).slice(0, 4)}</Year></PubDate><BeginningDate><Year>1993</Year></BeginningDate>` +
    `<AuthorList Type="editors"><Author><LastName>Roe</LastName><ForeName>Richard</ForeName><Initials>R</Initials></Author>` +
    `</AuthorList><Medium>Internet</Medium></Book>` +
    `<ArticleTitle book="gene" part="p${id}">${escaped(title)}</ArticleTitle><Language>eng</Language><AuthorList Type="authors">` +
    `<Author><LastName>Doe</LastName><ForeName>Jane</ForeName><Initials>J</Initials></Author></AuthorList>` +
    `<PublicationType UI="D016454">Review</PublicationType><Abstract><AbstractText Label="MANAGEMENT">` +
    `<i>Treatment:</i> ${escaped(record.abstract)}</AbstractText><CopyrightInformation>Nobody's</CopyrightInformation></Abstract>` +
    `<Sections><Section><SectionTitle book="gene" part="p${id}" sec="s1">Summary</SectionTitle></Section></Sections>` +
    `<ContributionDate>${date(record.created)}</ContributionDate><DateRevised>${date(record.updated)}</DateRevised>` +
    `</BookDocument><PubmedBookData><History><PubMedPubDate PubStatus="pubmed">${historyDate(record.created)}</PubMedPubDate></History>` +
    `<PublicationStatus>ppublish</PublicationStatus><ArticleIdList><ArticleId IdType="pubmed">${id}</ArticleId></ArticleIdList>` +
    `</PubmedBookData></PubmedBookArticle>`
  );
}

const YEAR_MS = 365 * 86_400_000;

/** EDAT: the day of entry, but the day of publication for what enters more than twelve months late. */
export function entered({ created, published }: Pick<SimulatedRecord, "created" | "published">): number {
  return created - published > YEAR_MS ? published : created;
}

function pubDate({ ordinal, published }: Omit<SimulatedRecord, "text">): string {
  const [year = "", month = "", day = ""] = dayOf(published).split("-");
  if (ordinal % MEDLINE_DATE_EVERY === 4) return `<MedlineDate>${year} Jan-Feb</MedlineDate>`;
  return `<Year>${year}</Year><Month>${MONTHS[Number(month) - 1]}</Month><Day>${day}</Day>`;
}

/** Of the citation: with two digits. */
function date(ms: number): string {
  const [year, month, day] = dayOf(ms).split("-");
  return `<Year>${year}</Year><Month>${month}</Month><Day>${day}</Day>`;
}

/** Of the history: without leading zeros, and with a time. */
function historyDate(ms: number): string {
  const [year, month, day] = dayOf(ms).split("-");
  const time = "<Hour>6</Hour><Minute>0</Minute>";
  return `<Year>${year}</Year><Month>${Number(month)}</Month><Day>${Number(day)}</Day>${time}`;
}
