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
const SECRET_FIELD =
  /(authorization|cookie|password|passwd|passphrase|(^|[-_])pass|pwd|token|secret|credentials?|(api|access|secret|private|signing|auth)[-_]?key)$/i;
/** Holds the name of a stored secret, except as a variable of an environment. */
const SECRET_NAME_FIELD = "secret";

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
  const [parent = "", name = ""] = ["", ...field.split(".")].slice(-2);
  const entries = Object.entries(values).map(([side, value]) => [
    side,
    withoutSecrets(value, name, isSecret(name, parent)),
  ]);
  return { field, ...Object.fromEntries(entries) };
}

function isSecret(name: string, parent: string): boolean {
  return SECRET_FIELD.test(name) && (name !== SECRET_NAME_FIELD || parent === "env");
}

/** `isMasked` holds for everything below a field too. */
function withoutSecrets(value: unknown, name: string, isMasked: boolean): unknown {
  if (Array.isArray(value)) return value.map((one) => withoutSecrets(one, name, isMasked));
  if (!isRecord(value)) return isMasked && value !== null ? MASKED : value;
  const entries = Object.entries(value);
  return Object.fromEntries(
    entries.map(([key, one]) => [key, withoutSecrets(one, key, isMasked || isSecret(key, name))]),
  );
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
