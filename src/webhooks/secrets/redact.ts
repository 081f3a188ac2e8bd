/** Removes a secret from a receiver's answer or an error before it is stored: many receivers echo the request. */
import { isRecord } from "../../kernel/json/is-record.ts";
import { bodyFields, type Secret } from "./secret.ts";

const CENSOR = "[redacted]";
/** A single character is not a secret, and removing it would make the text unreadable. */
const LENGTH_MIN = 2;

export function redactor(secret: Secret | undefined): (text: string) => string {
  const forms = secret ? [...new Set(valuesOf(secret).flatMap(formsOf))] : [];
  // The longest first, because one value may contain another.
  const needles = forms.filter(({ length }) => length >= LENGTH_MIN).sort((a, b) => b.length - a.length);
  return (text) => needles.reduce((left, needle) => left.replaceAll(needle, CENSOR), text);
}

function valuesOf({ type, value }: Secret): string[] {
  switch (type) {
    case "Query":
      return [value];
    case "Header":
      return [value, ...value.split(" ").slice(1)]; // The part after `Bearer` is the secret.
    case "Body":
      return [value, ...leavesOf(bodyFields(value))];
  }
}

function leavesOf(value: unknown): string[] {
  if (typeof value === "string" || typeof value === "number") return [String(value)];
  if (Array.isArray(value)) return value.flatMap(leavesOf);
  return isRecord(value) ? Object.values(value).flatMap(leavesOf) : [];
}

/** The forms in which a value may be echoed: plain, URL-encoded, form-encoded, in JSON. */
function formsOf(text: string): string[] {
  const wellFormed = text.toWellFormed();
  const inForm = new URLSearchParams([["", wellFormed]]).toString().slice(1);
  return [text, encodeURIComponent(wellFormed), inForm, JSON.stringify(text).slice(1, -1)];
}
