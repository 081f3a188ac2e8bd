/** Answers: where the records are, what identifies them, and what becomes of them. */
import type { CheckInput, Finding } from "./check.ts";

/** Columns that every table in the lake has. */
const OWN_COLUMNS: ReadonlySet<string> = new Set(["data", "op_time"]);

/** Postgres cuts longer names off. */
const POSTGRES_NAME_MAX = 63;

/** 4.17, number 5. `updatedAtPath` may be missing: some sources have no such time, and versions go by content. */
export function* recordsAreFound({ policy: { response } }: CheckInput): Iterable<Finding> {
  if (response.itemsPath === undefined) {
    yield { field: "response.itemsPath", reason: "It is missing: the path of the list of records." };
  }
  if (response.idPath === undefined) {
    yield { field: "response.idPath", reason: "It is missing: the path of the id in a record." };
  }
}

export function* responseIsConsistent({ policy: { response }, origins }: CheckInput): Iterable<Finding> {
  if (response.deletedPath !== undefined && response.deletedValues === undefined) {
    yield { field: "response.deletedValues", reason: "`deletedPath` needs the values that mean deleted." };
  }
  if (response.deletedValues !== undefined && response.deletedPath === undefined) {
    yield { field: "response.deletedPath", reason: "`deletedValues` needs the path of the value." };
  }
  const isDeclared = (origins["response.updatedAtFormat"] ?? "platform") !== "platform";
  if (isDeclared && response.updatedAtPath === undefined) {
    yield { field: "response.updatedAtPath", reason: "`updatedAtFormat` needs the path of the time." };
  }
  if (response.itemElements !== undefined && response.format !== "XML") {
    yield { field: "response.itemElements", reason: "Only XML has elements, and the format is JSON." };
  }
}

/** Of several ids, an answer that has no records does not say which one is deleted. */
export function* deletedIsSaidOfOne({ policy: { classifier, batching }, answersIds }: CheckInput): Iterable<Finding> {
  for (const [index, { action }] of classifier.entries()) {
    if (action !== "DELETED" || (answersIds && batching.idBatchSize === 1)) continue;
    const reason =
      "DELETED is said of one record: it needs an endpoint that answers ids, with `batching.idBatchSize: 1`.";
    yield { field: `classifier[${index}].action`, reason };
  }
}

export function* outputFieldsAreColumns({ policy: { outputFields } }: CheckInput): Iterable<Finding> {
  // Engines compare names of columns without regard to case.
  const names = outputFields.map(({ name }) => name.toLowerCase());
  for (const [index, name] of names.entries()) {
    const field = `outputFields[${index}].name`;
    if (names.indexOf(name) !== index) yield { field, reason: `There is another field \`${name}\`.` };
    if (OWN_COLUMNS.has(name)) yield { field, reason: `Every table has a column \`${name}\` already.` };
  }
}

export function* landingHasWindows({ policy: { landing, window }, isDetail }: CheckInput): Iterable<Finding> {
  if (!landing || isDetail) return;
  if (landing.table === undefined) yield { field: "landing.table", reason: "It is missing: the name of the table." };
  if (landing.engine !== undefined && (landing.table?.length ?? 0) > POSTGRES_NAME_MAX) {
    const reason = `In an engine the name of a table has at most ${POSTGRES_NAME_MAX} characters.`;
    yield { field: "landing.table", reason };
  }
  if (!window) {
    yield { field: "landing.table", reason: "A table is written by windows of time, and the endpoint has no window." };
  } else if (landing.grain === "hour" && /^P\d+D/.test(window.granularity ?? "")) {
    yield { field: "landing.grain", reason: "The source filters by days, so hours cannot be told apart." };
  }
}
