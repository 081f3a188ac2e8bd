/** What an update changed, for its row in the audit log: field by field, before and after, shortened and without secrets. */
import type { FieldDifference } from "../json/differences.ts";
import { isRecord } from "../json/is-record.ts";

const CHANGES_MAX = 50;
/** Of one value: enough for most SQL. */
const VALUE_LENGTH_MAX = 2_000;
/** Of all values of a row. */
const ALL_LENGTH_MAX = 20_000;
/** What is kept in front of the first difference of two long texts. */
const CONTEXT_LENGTH = 200;
const MASKED = "***";
/** A field `secret` holds the name of a stored secret. Others, such as `Authorization` or `clientSecret`, may hold the value. */
const SECRET_FIELD = /^(?!secret$).*(authorization|cookie|password|passwd|passphrase|token|secret|api[-_]?key)$/i;

export interface AuditedChanges {
  changes: readonly FieldDifference[];
  /** How many more there are. */
  moreChanges?: number;
}

export function auditedChanges(all: readonly FieldDifference[]): AuditedChanges {
  const changes: FieldDifference[] = [];
  let length = 0;
  for (const one of all.slice(0, CHANGES_MAX)) {
    const shown = shortened(masked(one));
    length += JSON.stringify(shown).length;
    if (length > ALL_LENGTH_MAX && changes.length > 0) break;
    changes.push(shown);
  }
  const moreChanges = all.length - changes.length;
  return { changes, ...(moreChanges > 0 && { moreChanges }) };
}

function masked({ field, ...values }: FieldDifference): FieldDifference {
  const name = field.slice(field.lastIndexOf(".") + 1);
  const entries = Object.entries(values).map(([side, value]) => [side, withoutSecrets(name, value)]);
  return { field, ...Object.fromEntries(entries) };
}

function withoutSecrets(name: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutSecrets(name, one));
  if (isRecord(value))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withoutSecrets(key, one)]));
  return SECRET_FIELD.test(name) && value !== null ? MASKED : value;
}

/** Of a long value, the part around the first difference. */
function shortened({ field, ...values }: FieldDifference): FieldDifference {
  const [from = "", to = ""] = [values.from, values.to].map(textOf);
  let at = 0;
  while (at < from.length && from[at] === to[at]) at += 1;
  const entries = Object.entries(values).map(([side, value]) => {
    const text = textOf(value);
    return [side, text.length > VALUE_LENGTH_MAX ? partOf(text, at) : value];
  });
  return { field, ...Object.fromEntries(entries) };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function partOf(text: string, at: number): string {
  const start = Math.max(0, Math.min(at - CONTEXT_LENGTH, text.length - VALUE_LENGTH_MAX));
  const end = start + VALUE_LENGTH_MAX;
  // A pair of surrogates that is cut apart is not storable.
  const part = text.slice(start, end).toWellFormed();
  return `${start > 0 ? "… " : ""}${part}${end < text.length ? " …" : ""}`;
}
