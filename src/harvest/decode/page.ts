/** The parts of an answer: its items, and what it says about those to come. */
import type { EndpointSpec } from "../spec/snapshot.ts";
import { DecodeError } from "./decode-error.ts";
import { decodeJson } from "./json.ts";
import { compilePath, EVERY, optionalPath, type Path, type Step } from "./paths.ts";
import type { RecordOutcome } from "./record.ts";
import { countOf, truthOf, wordOf } from "./values.ts";
import { decodeXml, ITEMS_MAX, recordElements } from "./xml.ts";

export interface Page<Item = RecordOutcome> {
  /** The JSON document, or the envelope of XML: the document without its records. */
  document: unknown;
  items: Item[];
  total?: number;
  /** What the source hints at the number of records of the list. */
  hint?: number;
  /** How many records it says that it stands for. */
  count?: number;
  /** Null where there is a path and no token. */
  nextToken?: string | null;
  nextUrl?: string | null;
  /** Absent where the answer does not say. */
  hasMore?: boolean;
  /** What was repaired. */
  warnings: string[];
}

/** A body that is well-formed; whether it is a page is not known yet. */
export interface Parsed<Item = unknown> {
  document: unknown;
  /** The records of XML, which are read while it is parsed. */
  items?: Item[];
  /** Of XML: the element around the records is there. */
  hasList?: boolean;
  warnings: string[];
}

const TOKEN_LENGTH_MAX = 16_384;

export function compilePage<Item>(
  { response, pagination }: Pick<EndpointSpec, "response" | "pagination">,
  read: (item: unknown) => Item,
) {
  const records = response.format === "XML" ? recordElements(response.itemsPath, response.itemElements) : undefined;
  const itemsOf = records ? undefined : compileItems(response.itemsPath);
  const totalPath = optionalPath(response.totalPath);
  const tokenPath = optionalPath(pagination.nextTokenPath);
  const urlPath = optionalPath(pagination.nextUrlPath);
  const morePath = optionalPath(pagination.hasMorePath);
  const countPath = optionalPath(pagination.countPath);

  function items(parsed: Parsed<Item>, total: number | undefined): Item[] {
    const found = itemsOf?.(parsed.document);
    if (found && found.length > ITEMS_MAX) throw new DecodeError(`The body has more than ${ITEMS_MAX} items.`);
    const all = found ? found.map(read) : parsed.hasList ? parsed.items : undefined;
    if (all === undefined && total !== 0) throw new DecodeError(`The body has no items at \`${response.itemsPath}\`.`);
    return all ?? [];
  }

  return {
    parse: (body: Buffer, contentType: string | undefined): Parsed<Item> =>
      response.format === "JSON" ? decodeJson(body, contentType) : decodeXml(body, contentType, records, read),

    /** Throws a DecodeError if the document is not a page. */
    pageOf(parsed: Parsed<Item>): Page<Item> {
      const { document, warnings } = parsed;
      const total = countOf(totalPath?.first(document));
      const count = countOf(countPath?.first(document));
      const hasMore = truthOf(morePath?.first(document));
      return {
        document,
        items: items(parsed, total),
        warnings,
        ...(total !== undefined && { total }),
        ...(count !== undefined && { count }),
        ...(tokenPath && { nextToken: linkAt(tokenPath, document) }),
        ...(urlPath && { nextUrl: linkAt(urlPath, document) }),
        ...(hasMore !== undefined && { hasMore }),
      };
    },
  };
}

/** The document of a body without records. */
export function parseDocument(body: Buffer, contentType: string | undefined, format: "JSON" | "XML"): Parsed {
  return format === "JSON" ? decodeJson(body, contentType) : decodeXml(body, contentType, undefined, () => undefined);
}

function linkAt(path: Path, document: unknown): string | null {
  const link = wordOf(path.first(document));
  if (link === undefined) return null;
  if (link.length > TOKEN_LENGTH_MAX)
    throw new DecodeError(`\`${path.text}\` has more than ${TOKEN_LENGTH_MAX} characters.`);
  return link.toWellFormed();
}

/**
 * Returns undefined if the document has no such list, which is a document of another shape. A null and an object without
 * the list are empty lists; only the document itself must have it.
 */
function compileItems(itemsPath: string): (document: unknown) => unknown[] | undefined {
  const path = compilePath(itemsPath);
  const { steps } = path;
  const listSteps = steps?.at(-1) === EVERY ? steps.slice(0, -1) : steps;
  if (!listSteps || listSteps.includes(EVERY)) return (document) => path.all(document);

  const list = compilePath(pathText(listSteps));
  const parent = listSteps.length > 1 ? compilePath(pathText(listSteps.slice(0, -1))) : undefined;
  return (document) => {
    const found = list.first(document);
    if (Array.isArray(found)) return found;
    if (found === null) return [];
    if (found !== undefined) return steps === listSteps || typeof found !== "object" ? [found] : Object.values(found);
    const around = parent?.first(document);
    return typeof around === "object" && around !== null ? [] : undefined;
  };
}

function pathText(steps: readonly Step[]): string {
  return `$${steps.map((step) => `[${typeof step === "number" ? step : JSON.stringify(step)}]`).join("")}`;
}
