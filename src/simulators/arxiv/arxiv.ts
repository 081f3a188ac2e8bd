/**
 * A simulator of an OAI-PMH server, by default as arXiv's (`https://oaipmh.arxiv.org`): a token that counts the records of
 * its last day, tokens that expire at midnight, deleted records. Options make it another server.
 */
import { DAY_MS } from "../../kernel/time/units.ts";
import { dayOf, instantOf, type SimulatedRecord, secondOf } from "../common/records.ts";
import {
  type Simulator,
  type SimulatorOptions,
  type SourceContext,
  startSimulator,
  TRANSPORT_FAULTS,
} from "../common/simulator.ts";
import { type Answer, announcedTotal, type Source, type SourceRequest } from "../common/source.ts";
import { escaped } from "../common/xml.ts";
import {
  badToken,
  checkedPrefix,
  checkedVerb,
  type ListArguments,
  listArguments,
  ProtocolError,
  readToken,
  writeToken,
} from "./arguments.ts";
import { arxivIdOf, FORMATS, headerOf, metadataOf, SETS, setOf } from "./metadata.ts";

export interface ArxivOptions extends SimulatorOptions {
  /** Records of a page of ListRecords. */
  pageSize?: number;
  /** Headers of a page of ListIdentifiers. */
  identifiersPageSize?: number;
  /** `second`: datestamps and arguments have a time too. */
  granularity?: "day" | "second";
  /** The status of protocol errors; Zenodo answers 422. */
  errorStatus?: 200 | 422;
  /** Whether a token says how long the list is and where the page begins. */
  completeListSize?: boolean;
}

export const ARXIV_FAULTS = [
  ...TRANSPORT_FAULTS,
  "duplicate-across-pages",
  "short-page",
  "variable-page-size",
  "token-expiry",
  "no-records-at-end",
  "total-off-by-one", // Where it announces one (`completeListSize`).
  "control-character",
] as const;

const PAGE_SIZE = 2500;
const IDENTIFIERS_PAGE_SIZE = 20_000;
/** One request every three seconds is asked for. A tenth less is held against a caller, since a network stretches gaps. */
const INTERVAL_MS = 2700;
const RETRY_AFTER_SECONDS = 10;
const TOKENS_MAX = 100_000;
/** The second is that of the old host. */
const PATHS = ["/oai", "/oai2"];
const PREFIX = "oai:arXiv.org:";

export function startArxiv(options: ArxivOptions = {}): Promise<Simulator> {
  return startSimulator(
    {
      basePath: "",
      faults: ARXIV_FAULTS,
      keepsDeleted: true,
      idOf: arxivIdOf,
      write: (record) => writeRecord(record, "arXiv", datestampOf(options)),
      open: (context) => openArxiv(context, options),
    },
    options,
  );
}

function datestampOf({ granularity }: ArxivOptions): (ms: number) => string {
  return granularity === "second" ? secondOf : dayOf;
}

function writeRecord(record: Omit<SimulatedRecord, "text">, format: string, datestamp: (ms: number) => string): string {
  return `<record>${headerOf(record, datestamp)}${record.deleted ? "" : metadataOf(record, format)}</record>`;
}

function openArxiv({ store, random, clock }: SourceContext, options: ArxivOptions): Source {
  const datestamp = datestampOf(options);
  /** The day on which a token was last handed out. */
  const issued = new Map<string, string>();

  function answer(request: SourceRequest): Answer {
    const { params, path } = request;
    if (!PATHS.includes(path))
      return { status: 404, type: "text/html", body: "<html><body><h1>Not Found</h1></body></html>\n" };
    try {
      const verb = checkedVerb(params);
      return protocol(200, requestElement(params), `<${verb}>${content(verb, request)}</${verb}>`);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      const element = `<error code='${error.code}'>${escaped(error.message)}</error>`;
      const told = error.code === "noRecordsMatch" ? requestElement(params) : requestElement(new URLSearchParams());
      return protocol(options.errorStatus ?? 200, told, element);
    }
  }

  function content(verb: string, request: SourceRequest): string {
    switch (verb) {
      case "Identify":
        return identify();
      case "ListMetadataFormats":
        return listFormats();
      case "ListSets":
        return SETS.map(([spec, name]) => `<set><setSpec>${spec}</setSpec><setName>${name}</setName></set>`).join("");
      case "GetRecord":
        return getRecord(request.params);
      default:
        return list(verb, request);
    }
  }

  function getRecord(params: URLSearchParams): string {
    const format = checkedPrefix(params.get("metadataPrefix"));
    const identifier = params.get("identifier") ?? "";
    const id = identifier.startsWith(PREFIX) ? identifier.slice(PREFIX.length) : identifier;
    const record = store.find(id);
    if (!record)
      throw new ProtocolError(
        "idDoesNotExist",
        "The value of the identifier argument is unknown or illegal in this repository. Reason: Invalid arXiv_id structure",
      );
    return writeRecord(record, format, datestamp);
  }

  function list(verb: string, request: SourceRequest): string {
    const token = request.params.get("resumptionToken");
    const toSecond = options.granularity === "second";
    const args =
      token === null ? listArguments(request.params, verb, clock.now(), toSecond) : argumentsOf(token, verb, request);
    const matching = select(args);
    const size = pageSizeOf(verb, request);
    const start = Math.max(
      0,
      args.skip - (args.skip > 0 && size > 1 && request.strikes("duplicate-across-pages") ? 1 : 0),
    );
    const page = matching.slice(start, start + size);
    if (page.length === 0)
      throw new ProtocolError(
        "noRecordsMatch",
        "The combination of the values of the from, until, set and metadataPrefix arguments results in an empty list.",
      );
    const shown = start + page.length;
    const isPast = shown >= matching.length && request.strikes("no-records-at-end");
    const next = shown < matching.length || isPast ? nextOf(args, matching, shown) : undefined;
    const whole = options.completeListSize ? (args.list ?? { size: matching.length, cursor: 0 }) : undefined;
    const following = next && whole ? { ...next, list: { ...whole, cursor: whole.cursor + page.length } } : next;
    const records = page.map((record) => entry(verb, record, args.metadataPrefix)).join("");
    const announced = whole && { ...whole, size: announcedTotal(request, random, whole.size) };
    return records + tokenElement(token !== null, following, announced);
  }

  function argumentsOf(token: string, verb: string, request: SourceRequest): ListArguments {
    if ([...request.params.keys()].length > 2) throw new ProtocolError("badArgument", "resumptionToken is exclusive");
    const day = issued.get(token);
    if ((day !== undefined && day !== dayOf(clock.now())) || request.strikes("token-expiry")) throw badToken();
    return readToken(token, verb);
  }

  function select({ from, until, set }: ListArguments): readonly SimulatedRecord[] {
    const found = store.between("updated", {
      from: from === undefined ? undefined : instantOf(from),
      until: until === undefined ? undefined : instantOf(until) + (until.includes("T") ? 1000 : DAY_MS) - 1,
    });
    if (set === undefined) return found;
    return found.filter((record) => setOf(record) === set || setOf(record).startsWith(`${set}:`));
  }

  function pageSizeOf(verb: string, request: SourceRequest): number {
    const most =
      verb === "ListRecords" ? (options.pageSize ?? PAGE_SIZE) : (options.identifiersPageSize ?? IDENTIFIERS_PAGE_SIZE);
    const size = request.strikes("variable-page-size") ? Math.max(1, most - random.below(Math.ceil(most / 2))) : most;
    return size > 1 && request.strikes("short-page") ? size - 1 : size;
  }

  /** The next page begins on the day of the last record shown, after those of that day that were shown. */
  function nextOf(args: ListArguments, matching: readonly SimulatedRecord[], shown: number): ListArguments {
    const last = datestamp(matching[shown - 1]?.updated ?? 0);
    let skip = 0;
    while (skip < shown && datestamp(matching[shown - 1 - skip]?.updated ?? 0) === last) skip += 1;
    return { ...args, from: last, skip };
  }

  /** A list of one page has none; the last page of a longer one has an empty one. */
  function tokenElement(isLater: boolean, next: ListArguments | undefined, whole: ListArguments["list"]): string {
    const counts = whole ? ` completeListSize='${whole.size}' cursor='${whole.cursor}'` : "";
    if (next === undefined) return isLater ? `<resumptionToken${counts}/>` : "";
    const written = writeToken(next);
    if (issued.size >= TOKENS_MAX) issued.clear();
    issued.set(written, dayOf(clock.now()));
    const midnight = secondOf(clock.now() - (clock.now() % DAY_MS) + DAY_MS);
    return `<resumptionToken expirationDate='${midnight}'${counts}>${written}</resumptionToken>`;
  }

  /** The usual format was written when the record was made. */
  function entry(verb: string, record: SimulatedRecord, format: string): string {
    if (verb === "ListIdentifiers") return headerOf(record, datestamp);
    return format === "arXiv" ? record.text : writeRecord(record, format, datestamp);
  }

  function identify(): string {
    return (
      "<repositoryName>arXiv</repositoryName><baseURL>http://oaipmh.arxiv.org/oai</baseURL><protocolVersion>2.0</protocolVersion>" +
      "<adminEmail>help@arxiv.org</adminEmail><earliestDatestamp>2005-09-16</earliestDatestamp>" +
      "<deletedRecord>persistent</deletedRecord>" +
      `<granularity>${options.granularity === "second" ? "YYYY-MM-DDThh:mm:ssZ" : "YYYY-MM-DD"}</granularity>`
    );
  }

  function protocol(status: number, request: string, inner: string): Answer {
    const body =
      '<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" ' +
      'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/ ' +
      'http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd">\n' +
      `<responseDate>${secondOf(clock.now())}</responseDate>\n${request}\n${inner}\n</OAI-PMH>`;
    return { status, type: "text/xml", body };
  }

  return {
    limitOf: ({ remoteAddress }) => ({
      key: `address ${remoteAddress}`,
      requests: 1,
      intervalMs: INTERVAL_MS,
      concurrency: 1,
    }),
    rateHeaders: () => ({}),
    tooMany: () => ({
      status: 503,
      type: "text/html",
      headers: { "retry-after": String(RETRY_AFTER_SECONDS) },
      body: `<html><body>\n<h1>Retry after ${RETRY_AFTER_SECONDS} seconds</h1>\n</body></html>\n`,
    }),
    answer,
  };
}

function requestElement(params: URLSearchParams): string {
  const attributes = [...params].map(([name, value]) => ` ${name}="${escaped(value)}"`).join("");
  return `<request${attributes}>http://oaipmh.arxiv.org/oai</request>`;
}

function listFormats(): string {
  return Object.entries(FORMATS)
    .map(
      ([prefix, { schema, namespace }]) =>
        `<metadataFormat><metadataPrefix>${prefix}</metadataPrefix><schema>${schema}</schema>` +
        `<metadataNamespace>${namespace}</metadataNamespace></metadataFormat>`,
    )
    .join("");
}
