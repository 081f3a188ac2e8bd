/** One e-print in the formats of arXiv's OAI-PMH, and its header. */
import { DAY_MS } from "../../kernel/time/units.ts";
import { dayOf, type SimulatedRecord } from "../common/records.ts";
import { escaped } from "../common/xml.ts";

/** The category of an e-print and the sets that it is in. */
const CATEGORIES = [
  { category: "cs.AI", set: "cs:cs:AI" },
  { category: "math.NT", set: "math:math:NT" },
  { category: "hep-th", set: "physics:hep-th" },
  { category: "quant-ph", set: "physics:quant-ph" },
  { category: "stat.ML", set: "stat:stat:ML" },
] as const;

export const SETS: readonly (readonly [spec: string, name: string])[] = [
  ["cs", "Computer Science"],
  ["cs:cs", "Computer Science"],
  ["cs:cs:AI", "Artificial Intelligence"],
  ["math", "Mathematics"],
  ["math:math", "Mathematics"],
  ["math:math:NT", "Number Theory"],
  ["physics", "Physics"],
  ["physics:hep-th", "High Energy Physics - Theory"],
  ["physics:quant-ph", "Quantum Physics"],
  ["stat", "Statistics"],
  ["stat:stat", "Statistics"],
  ["stat:stat:ML", "Machine Learning"],
];

export const FORMATS: Readonly<Record<string, { schema: string; namespace: string }>> = {
  oai_dc: {
    schema: "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
    namespace: "http://www.openarchives.org/OAI/2.0/oai_dc/",
  },
  arXiv: { schema: "https://oaipmh.arxiv.org/OAI/arXiv.xsd", namespace: "http://arxiv.org/OAI/arXiv/" },
  arXivRaw: { schema: "https://oaipmh.arxiv.org/OAI/arXivRaw.xsd", namespace: "http://arxiv.org/OAI/arXivRaw/" },
};

type WrittenRecord = Omit<SimulatedRecord, "text">;

/** `2608.00001`: the month of creation and a number that is never used twice. */
export function arxivIdOf(ordinal: number, created: number): string {
  const [year = "", month = ""] = dayOf(created).split("-");
  return `${year.slice(2)}${month}.${String(ordinal + 1).padStart(5, "0")}`;
}

export function setOf({ ordinal }: WrittenRecord): string {
  return categoryOf(ordinal).set;
}

function categoryOf(ordinal: number): (typeof CATEGORIES)[number] {
  return CATEGORIES[ordinal % CATEGORIES.length] ?? CATEGORIES[0];
}

export function headerOf(record: WrittenRecord, datestamp: (ms: number) => string): string {
  return (
    `<header${record.deleted ? ' status="deleted"' : ""}><identifier>oai:arXiv.org:${record.id}</identifier>` +
    `<datestamp>${datestamp(record.updated)}</datestamp><setSpec>${setOf(record)}</setSpec></header>`
  );
}

const WRITERS: Readonly<Record<string, (record: WrittenRecord) => string>> = { arXiv, arXivRaw, oai_dc: dublinCore };

export function metadataOf(record: WrittenRecord, format: string): string {
  return `<metadata>${WRITERS[format]?.(record) ?? ""}</metadata>`;
}

function arXiv(record: WrittenRecord): string {
  const { id, version, title, abstract, ordinal } = record;
  return (
    `<arXiv ${namespaceOf("arXiv")}><id>${id}</id><created>${dayOf(record.created - DAY_MS)}</created>` +
    (version > 1 ? `<updated>${dayOf(record.updated)}</updated>` : "") +
    `<authors><author><keyname>Doe ${ordinal % 1000}</keyname><forenames>Jane</forenames></author></authors>` +
    `<title>${escaped(title)}</title><categories>${categoryOf(ordinal).category}</categories>` +
    `<comments>${1 + (ordinal % 40)} pages</comments><license>http://creativecommons.org/licenses/by/4.0/</license>` +
    `<abstract>${escaped(abstract)}</abstract></arXiv>`
  );
}

function arXivRaw(record: WrittenRecord): string {
  const { id, version, title, abstract, ordinal } = record;
  const versions = Array.from({ length: version }, (_, index) => {
    const date = new Date(index === version - 1 ? record.updated : record.created).toUTCString();
    return `<version version="v${index + 1}"><date>${date}</date><size>${40 + index}kb</size><source_type>D</source_type></version>`;
  });
  return (
    `<arXivRaw ${namespaceOf("arXivRaw")}><id>${id}</id><submitter>Jane Doe</submitter>${versions.join("")}` +
    `<title>${escaped(title)}</title><authors>Jane Doe ${ordinal % 1000}</authors>` +
    `<categories>${categoryOf(ordinal).category}</categories><comments>${1 + (ordinal % 40)} pages</comments>` +
    `<journal-ref>J. Sim. ${1 + (ordinal % 90)} (2026)</journal-ref><doi>10.5555/arxiv.${id}</doi>` +
    `<license>http://creativecommons.org/licenses/by/4.0/</license><abstract>${escaped(abstract)}</abstract></arXivRaw>`
  );
}

function dublinCore(record: WrittenRecord): string {
  const { id, title, abstract, ordinal } = record;
  return (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/" ' +
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ ' +
    `http://www.openarchives.org/OAI/2.0/oai_dc.xsd"><dc:title>${escaped(title)}</dc:title><dc:creator>Doe ${ordinal % 1000}, Jane` +
    `</dc:creator><dc:subject>${categoryOf(ordinal).category}</dc:subject><dc:description>${escaped(abstract)}</dc:description>` +
    `<dc:date>${dayOf(record.updated)}</dc:date><dc:type>text</dc:type><dc:identifier>http://arxiv.org/abs/${id}</dc:identifier></oai_dc:dc>`
  );
}

function namespaceOf(format: "arXiv" | "arXivRaw"): string {
  const { namespace, schema } = FORMATS[format] ?? { namespace: "", schema: "" };
  return (
    `xmlns="${namespace}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ` +
    `xsi:schemaLocation="${namespace} ${schema}"`
  );
}
