/** One work as Crossref's JSON has it. */
import { dayOf, type SimulatedRecord, secondOf } from "../common/records.ts";

const PREFIX = "10.5555";
const TYPES = ["journal-article", "book-chapter", "posted-content", "proceedings-article"] as const;
const NEVER_PUBLISHED_EVERY = 25;

export function doiOf(ordinal: number): string {
  return `${PREFIX}/millrace.${ordinal.toString().padStart(7, "0")}`;
}

export function typeOf({ ordinal }: Pick<SimulatedRecord, "ordinal">): string {
  return TYPES[ordinal % TYPES.length] ?? TYPES[0];
}

export function prefixOf({ id }: Pick<SimulatedRecord, "id">): string {
  return id.slice(0, Math.max(0, id.indexOf("/")));
}

export const MEMBER = "7822";

export function writeItem(record: Omit<SimulatedRecord, "text">): string {
  const { id, title, abstract, ordinal } = record;
  const issued = ordinal % NEVER_PUBLISHED_EVERY === 7 ? [null] : dateParts(record.published);
  return JSON.stringify({
    indexed: { ...dateOf(record.indexed), version: "3.55.0" },
    "reference-count": 0,
    publisher: "Test accounts",
    "content-domain": { domain: [], "crossmark-restriction": false },
    abstract: `<jats:p>${abstract}</jats:p>`,
    DOI: id,
    type: typeOf(record),
    created: dateOf(record.created),
    source: "Crossref",
    "is-referenced-by-count": ordinal % 50,
    title: [title],
    prefix: prefixOf(record),
    author: [{ given: "Jane", family: `Doe ${ordinal % 1000}`, sequence: "first", affiliation: [] }],
    member: MEMBER,
    "container-title": ["Journal of Simulated Results"],
    deposited: dateOf(record.updated),
    score: 0.5 + (ordinal % 8),
    resource: { primary: { URL: `https://www.example.org/works/${ordinal}` } },
    issued: { "date-parts": [issued] },
    "references-count": 0,
    URL: `https://doi.org/${id}`,
    published: { "date-parts": [dateParts(record.published)] },
  });
}

function dateOf(ms: number): Record<string, unknown> {
  return { "date-parts": [dateParts(ms)], "date-time": secondOf(ms), timestamp: ms };
}

function dateParts(ms: number): number[] {
  return dayOf(ms).split("-").map(Number);
}
