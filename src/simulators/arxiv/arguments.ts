/** The arguments of an OAI-PMH request, as arXiv's server checks them. Wrong ones are an error of the protocol. */
import { DAY_MS } from "../../kernel/time/units.ts";
import { instantOf } from "../common/records.ts";
import { FORMATS } from "./metadata.ts";

export type ErrorCode =
  | "badArgument"
  | "badResumptionToken"
  | "badVerb"
  | "cannotDisseminateFormat"
  | "idDoesNotExist"
  | "noRecordsMatch";

export class ProtocolError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = "ProtocolError";
    this.code = code;
  }
}

/** The arguments of a list, from the request or from its token. */
export interface ListArguments {
  verb: string;
  metadataPrefix: string;
  from: string | undefined;
  until: string | undefined;
  set: string | undefined;
  /** How many records of the day `from` earlier pages have shown. */
  skip: number;
  /** Of a list that says how long it is: its size at the first page, and how many records came before this one. */
  list?: { size: number; cursor: number } | undefined;
}

const EARLIEST = "2005-09-16";
const DAY = /^\d{4}-\d\d-\d\d$/;
const SECOND = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  Identify: [],
  ListMetadataFormats: ["identifier"],
  ListSets: ["resumptionToken"],
  GetRecord: ["identifier", "metadataPrefix"],
  ListRecords: ["from", "until", "set", "metadataPrefix", "resumptionToken"],
  ListIdentifiers: ["from", "until", "set", "metadataPrefix", "resumptionToken"],
};

export function checkedVerb(params: URLSearchParams): string {
  const names = [...params.keys()];
  if (new Set(names).size < names.length) throw new ProtocolError("badArgument", "Duplicate parameters not allowed");
  const verb = params.get("verb") ?? "";
  const allowed = ALLOWED[verb];
  if (!allowed) throw new ProtocolError("badVerb", "Value of the verb argument is not a legal OAI-PMH verb.");
  const surplus = names.find((name) => name !== "verb" && !allowed.includes(name));
  if (surplus !== undefined) throw bad(`Parameter ${surplus} is not allowed for ${verb}`);
  return verb;
}

export function checkedPrefix(metadataPrefix: string | null): string {
  if (metadataPrefix === null) throw bad("metadataPrefix required");
  if (Object.hasOwn(FORMATS, metadataPrefix)) return metadataPrefix;
  throw new ProtocolError(
    "cannotDisseminateFormat",
    "The metadata format identified by the value given for the metadataPrefix argument is not supported by the item or by the repository.",
  );
}

export function listArguments(params: URLSearchParams, verb: string, now: number, toSecond: boolean): ListArguments {
  const metadataPrefix = checkedPrefix(params.get("metadataPrefix"));
  const [from, until] = [params.get("from") ?? undefined, params.get("until") ?? undefined];
  for (const date of [from, until]) {
    if (date === undefined || (DAY.test(date) && !Number.isNaN(Date.parse(date)))) continue;
    if (!toSecond || !SECOND.test(date) || Number.isNaN(Date.parse(date))) throw bad("date format must be YYYY-MM-DD");
  }
  if (from !== undefined && from < EARLIEST) throw bad("start date too early");
  if (until !== undefined && instantOf(until) > now + DAY_MS) throw bad("until date too late");
  if (from !== undefined && until !== undefined && from.length !== until.length)
    throw bad("from and until must have the same granularity");
  if (from !== undefined && until !== undefined && from > until) throw bad("until date must be after from date");
  return { verb, metadataPrefix, from, until, set: params.get("set") ?? undefined, skip: 0 };
}

/** The token is the query of the next page, encoded as one value: a client encodes it again to send it. */
export function writeToken({ verb, metadataPrefix, from, until, set, skip, list }: ListArguments): string {
  const parts = { verb, metadataPrefix, from, until, set, skip, ...list };
  const query = Object.entries(parts).flatMap(([name, value]) => (value === undefined ? [] : `${name}=${value}`));
  return encodeURIComponent(query.join("&"));
}

export function readToken(token: string, verb: string): ListArguments {
  let values: URLSearchParams;
  try {
    values = new URLSearchParams(decodeURIComponent(token));
  } catch {
    throw badToken();
  }
  const [metadataPrefix, skip] = [values.get("metadataPrefix"), values.get("skip") ?? ""];
  if (values.get("verb") !== verb || metadataPrefix === null || !/^\d+$/.test(skip)) throw badToken();
  const text = (name: string) => values.get(name) ?? undefined;
  const [size, cursor] = [values.get("size"), values.get("cursor")];
  const list = size === null || cursor === null ? undefined : { size: Number(size), cursor: Number(cursor) };
  return { verb, metadataPrefix, from: text("from"), until: text("until"), set: text("set"), skip: Number(skip), list };
}

export function badToken(reason = "Token decoding failed or format is invalid."): ProtocolError {
  return new ProtocolError(
    "badResumptionToken",
    `The value of the resumptionToken argument is invalid or expired. Reason: ${reason}`,
  );
}

function bad(reason: string): ProtocolError {
  return new ProtocolError(
    "badArgument",
    `The request includes illegal arguments, is missing required arguments, includes a repeated argument, or values for arguments have an illegal syntax. Reason: ${reason}`,
  );
}
