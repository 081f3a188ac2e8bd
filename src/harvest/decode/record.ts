/** An item of a page as a record: its key, version and content, or the reason why it goes to quarantine. */
import { hash } from "node:crypto";
import type { OutputField } from "../definition/policy.ts";
import type { EndpointSpec } from "../spec/snapshot.ts";
import { jsonText } from "./numbers.ts";
import { compilePath, optionalPath, type Path, type Place } from "./paths.ts";
import { timeOf } from "./times.ts";
import { textOf, truthOf, wordOf } from "./values.ts";

export interface DecodedRecord {
  key: string;
  dataJson: string;
  /** 16 bytes. Equal for equal content, except for ignored paths. */
  contentHash: Buffer;
  sourceTime: Date | null;
  providerVersion: string | null;
  deleted: boolean;
}

/** What a source that says no more than that a record is deleted leaves of it. */
export function tombstoneOf(key: string): DecodedRecord {
  const dataJson = "{}";
  return {
    key,
    dataJson,
    contentHash: contentHash({}, dataJson, []),
    sourceTime: null,
    providerVersion: null,
    deleted: true,
  };
}

export const QUARANTINE_CODES = ["MISSING_ID", "BAD_TIME", "MISSING_FIELD", "ILLEGAL_VALUE", "TOO_LARGE"] as const;
export interface Quarantine {
  code: (typeof QUARANTINE_CODES)[number];
  reason: string;
  /** The path that failed. */
  expression: string | null;
  /** The start of the item. */
  fragment: string;
  key: string | null;
}

export type RecordOutcome = DecodedRecord | { quarantine: Quarantine };

const KEY_LENGTH_MAX = 1_024;
/** A key of an index has at most 2,700 bytes. */
const KEY_BYTES_MAX = 2_048;
const VERSION_LENGTH_MAX = 255;
const RECORD_LENGTH_MAX = 16_000_000;
const FRAGMENT_LENGTH_MAX = 2_000;
const QUOTED_LENGTH_MAX = 100;
const HASH_BYTES = 16;

export function compileRecord({ response, outputFields }: Pick<EndpointSpec, "response" | "outputFields">) {
  const keyPaths = (response.keyPaths ?? [response.idPath]).map(compilePath);
  const timePath = optionalPath(response.updatedAtPath);
  const versionPath = optionalPath(response.versionPath);
  const deletedPath = optionalPath(response.deletedPath);
  const required = [
    ...response.requiredPaths.map((path) => compilePath(path)),
    ...outputFields.filter((field) => field.required).map(({ path }) => compilePath(path)),
  ];
  const closed = outputFields.flatMap(enumOf);
  const ignored = response.ignoredPaths.map(compilePath);

  function isDeleted(item: unknown): boolean {
    const found = deletedPath?.all(item) ?? [];
    const values = response.deletedValues;
    if (values) return found.some((value) => values.includes(wordOf(value) ?? ""));
    return found.some((value) => value !== null && value !== "" && truthOf(value) !== false);
  }

  /** The first check that the item does not pass. What was deleted often has nothing but its id. */
  function failedCheck(item: unknown): Failure | undefined {
    for (const path of required) {
      if (path.all(item).every(isMissing)) return ["MISSING_FIELD", "a required field is missing", path];
    }
    for (const { name, path, allowed } of closed) {
      for (const value of path.all(item)) {
        if (isMissing(value) || allowed.has(wordOf(value) ?? "")) continue;
        return [
          "ILLEGAL_VALUE",
          `the field ${name} has the value ${quoted(value)}, which is not one of its enum`,
          path,
        ];
      }
    }
    return undefined;
  }

  return function record(item: unknown): RecordOutcome {
    const dataJson = jsonText(item ?? null);
    const parts = keyPaths.map((path) => wordOf(path.first(item)));
    const missing = keyPaths[parts.indexOf(undefined)];
    const id = missing ? undefined : parts.join(":").toWellFormed();
    const failed = (code: Quarantine["code"], reason: string, path: Path | undefined): RecordOutcome => ({
      quarantine: {
        code,
        reason,
        expression: path?.text ?? null,
        fragment: dataJson.slice(0, FRAGMENT_LENGTH_MAX).toWellFormed(),
        key: id === undefined || isTooLong(id) ? null : id,
      },
    });

    if (id === undefined) return failed("MISSING_ID", "the record has no id", missing);
    if (isTooLong(id)) {
      const reason = `the id has more than ${KEY_LENGTH_MAX} characters or ${KEY_BYTES_MAX} bytes`;
      return failed("TOO_LARGE", reason, keyPaths[0]);
    }
    if (dataJson.length > RECORD_LENGTH_MAX) {
      return failed("TOO_LARGE", `the record has more than ${RECORD_LENGTH_MAX} characters`, undefined);
    }
    const deleted = isDeleted(item);
    const time = timePath?.first(item);
    const sourceTime = isMissing(time) ? undefined : timeOf(time, response.updatedAtFormat);
    if (!deleted) {
      if (sourceTime === undefined && !isMissing(time)) {
        return failed("BAD_TIME", `${quoted(time)} is not a time of the format ${response.updatedAtFormat}`, timePath);
      }
      const failure = failedCheck(item);
      if (failure) return failed(...failure);
    }
    return {
      key: id,
      dataJson,
      contentHash: contentHash(item, dataJson, ignored),
      sourceTime: sourceTime ?? null,
      providerVersion: wordOf(versionPath?.first(item))?.slice(0, VERSION_LENGTH_MAX).toWellFormed() ?? null,
      deleted,
    };
  };
}

type Failure = [Quarantine["code"], string, Path];

function enumOf({ name, path, enum: values }: OutputField) {
  return values ? [{ name, path: compilePath(path), allowed: new Set(values) }] : [];
}

/** Nothing, null or empty text. An empty list is a value. */
function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

function isTooLong(id: string): boolean {
  if (id.length > KEY_LENGTH_MAX) return true;
  return id.length * 3 > KEY_BYTES_MAX && Buffer.byteLength(id) > KEY_BYTES_MAX;
}

function quoted(value: unknown): string {
  const text = textOf(value)?.toWellFormed() ?? jsonText(value);
  return JSON.stringify(
    text.length > QUOTED_LENGTH_MAX ? `${text.slice(0, QUOTED_LENGTH_MAX).toWellFormed()}...` : text,
  );
}

function contentHash(item: unknown, dataJson: string, ignored: readonly Path[]): Buffer {
  const text =
    ignored.length === 0
      ? dataJson
      : withoutPlaces(
          item,
          ignored.flatMap((path) => path.places(item)),
        );
  return hash("sha256", text, "buffer").subarray(0, HASH_BYTES);
}

/** Takes the values out while the item is written, and puts them back: a copy of every record would take longer than the rest. */
function withoutPlaces(item: unknown, places: readonly Place[]): string {
  const values = places.map(({ parent, key }) => (parent as Record<string | number, unknown>)[key]);
  for (const { parent, key } of places) set(parent, key, undefined);
  const text = jsonText(item);
  for (const [index, { parent, key }] of places.entries()) set(parent, key, values[index]);
  return text;
}

/** An own member called `__proto__` is not set by assignment. */
function set(parent: Place["parent"], key: string | number, value: unknown): void {
  if (key !== "__proto__") (parent as Record<string | number, unknown>)[key] = value;
}
