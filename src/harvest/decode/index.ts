/** From the bytes of a response to records: decodes, classifies and extracts as the definition of the endpoint says. */
import type { EndpointSpec } from "../spec/snapshot.ts";
import { compileClassifier, TEXT_LENGTH_MAX, type Verdict } from "./classifier.ts";
import { DecodeError } from "./decode-error.ts";
import { compileHint } from "./hint.ts";
import { compilePage, type Page, type Parsed, parseDocument } from "./page.ts";
import { compilePath } from "./paths.ts";
import { compileRecord, tombstoneOf } from "./record.ts";
import { countOf } from "./values.ts";

export type { Verdict } from "./classifier.ts";
export type { Page } from "./page.ts";
export type { DecodedRecord } from "./record.ts";

export interface SourceResponse {
  status: number;
  /** By name in lower case. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** 1 for the first attempt. */
  attempt: number;
  /** Those that were asked for. */
  ids?: readonly string[];
}

/** `isReadable`: the body is a document of the endpoint's format, and where the verdict is OK a page. */
export interface Decoder {
  /** What a response means, with its page where it has one: for OK, a tombstone for DELETED, and none for IGNORE_EMPTY, whose total is not known. */
  read(response: SourceResponse): { verdict: Verdict; page?: Page; isReadable: boolean };
  /** The same for the response to a probe: the number of records that it, or without a probe a page, announces. */
  readProbe(response: SourceResponse): { verdict: Verdict; total?: number; isReadable: boolean };
}

export function compileDecoder(spec: EndpointSpec): Decoder {
  const { parse, pageOf } = compilePage(spec, compileRecord(spec));
  const hintOf = compileHint(spec.window?.hint, spec.pagination.pageSize);
  const classify = compileClassifier(spec.classifier);
  const probe = spec.window?.probe ?? { format: spec.response.format, totalPath: spec.response.totalPath };
  const probePath = probe.totalPath === undefined ? undefined : compilePath(probe.totalPath);
  const totalOf = ({ document }: Parsed) => countOf(probePath?.first(document));
  const parseProbe = (body: Buffer, contentType: string | undefined) => parseDocument(body, contentType, probe.format);

  function judge<Item>(
    { status, headers, body, attempt }: SourceResponse,
    parseAs: (body: Buffer, contentType: string | undefined) => Parsed<Item>,
  ): { verdict: Verdict; parsed?: Parsed<Item> } {
    const parsed = attempted(() => parseAs(body, headers["content-type"]));
    const failure = parsed instanceof DecodeError ? parsed : undefined;
    const verdict = classify({
      status,
      headers,
      body: parsed instanceof DecodeError ? null : parsed.document,
      get text() {
        return body.toString("utf8", 0, TEXT_LENGTH_MAX);
      },
      attempt,
    });
    // The rules of a definition may let a body pass that cannot be read.
    if (failure) return { verdict: verdict.action === "OK" ? unreadable(failure) : verdict };
    return { verdict, parsed: parsed as Parsed<Item> };
  }

  return {
    read(response) {
      const { verdict, parsed } = judge(response, parse);
      const isReadable = parsed !== undefined;
      if (verdict.action === "IGNORE_EMPTY") return { verdict, isReadable, page: emptyPage(parsed) };
      if (verdict.action === "DELETED") {
        const items = (response.ids ?? []).map(tombstoneOf);
        return { verdict, isReadable, page: { ...emptyPage(parsed), items } };
      }
      if (verdict.action !== "OK" || !parsed) return { verdict, isReadable };
      const page = attempted(() => pageOf(parsed));
      if (page instanceof DecodeError) return { verdict: unreadable(page), isReadable: false };
      const hint = hintOf?.(response.headers, parsed.document);
      return { verdict, page: hint === undefined ? page : { ...page, hint }, isReadable };
    },

    readProbe(response) {
      const { verdict, parsed } = judge(response, parseProbe);
      const isReadable = parsed !== undefined;
      if (verdict.action === "IGNORE_EMPTY") return { verdict, isReadable, total: 0 };
      if (verdict.action !== "OK" || !parsed) return { verdict, isReadable };
      const total = totalOf(parsed);
      return { verdict, isReadable, ...(total !== undefined && { total }) };
    },
  };
}

/** A body may be cut off, or come from a proxy: the next attempt may bring another. */
function unreadable({ message }: DecodeError): Verdict {
  return { action: "RETRY", reason: message, level: "L1" };
}

function emptyPage(parsed: Parsed | undefined): Page {
  return {
    document: parsed?.document ?? null,
    items: [],
    nextToken: null,
    nextUrl: null,
    hasMore: false,
    warnings: [],
  };
}

function attempted<Result>(run: () => Result): Result | DecodeError {
  try {
    return run();
  } catch (error) {
    if (error instanceof DecodeError) return error;
    throw error;
  }
}
