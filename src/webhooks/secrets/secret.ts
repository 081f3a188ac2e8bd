/**
 * The secret by which a receiver authenticates its caller: `Type,Key,Value`, added to the URL, the headers or the body. It
 * is parsed strictly, since a typo would send every delivery without it; no message ever quotes a part of it.
 */
import type { ApiError } from "../../kernel/errors.ts";
import { whyTooComplex } from "../../kernel/json/complexity.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { webhooksError } from "../catalogue.ts";

export const SECRET_TYPES = ["Query", "Header", "Body"] as const;
export type SecretType = (typeof SECRET_TYPES)[number];

export interface Secret {
  type: SecretType;
  key: string;
  /** May contain commas. */
  value: string;
}

export const SECRET_LENGTH_MAX = 2_000;
const KEY_LENGTH_MAX = 128;
/** Well below the depth that Postgres and `JSON.stringify` accept. */
const BODY_DEPTH_MAX = 32;
const BODY_KEY = "json";

/** The characters of a header name, by RFC 9110. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VISIBLE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** Headers that HTTP itself or the signature depends on. */
const OWN_HEADERS = new Set(
  (
    "accept-encoding connection content-encoding content-length content-type expect host keep-alive te trailer " +
    "transfer-encoding upgrade"
  ).split(" "),
);

export function parseSecret(text: string): Secret {
  if (text.length > SECRET_LENGTH_MAX) throw invalid(`it is longer than ${SECRET_LENGTH_MAX} characters`);
  const [, type = "", key = "", value = ""] = /^([^,]*),([^,]*),([^]*)$/.exec(text) ?? [];
  if (type === "" && key === "" && value === "") {
    throw invalid("it must be `Type,Key,Value`, as in `Header,Authorization,Bearer ...`");
  }
  if (!isSecretType(type)) {
    const hint = didYouMean(type.trim(), SECRET_TYPES).trim();
    throw invalid(`its type must be exactly ${SECRET_TYPES.map((one) => `\`${one}\``).join(", ")}`, hint);
  }
  if (key === "" || key !== key.trim() || key.length > KEY_LENGTH_MAX) {
    throw invalid(`its key must have 1 to ${KEY_LENGTH_MAX} characters, without spaces around it`);
  }
  if (value === "") throw invalid("its value is empty");
  check[type](key, value);
  return { type, key, value };
}

const check: Record<SecretType, (key: string, value: string) => void> = {
  Query: () => {},
  Header(key, value) {
    const name = key.toLowerCase();
    if (!TOKEN.test(key)) throw invalid("its key is not the name of a header");
    if (OWN_HEADERS.has(name) || name.startsWith("webhook-")) {
      throw invalid("its key is a header that the delivery itself sets");
    }
    if (!VISIBLE.test(value)) {
      throw invalid("a header's value has visible ASCII characters and spaces between them, and no line breaks");
    }
  },
  Body(key, value) {
    if (key !== BODY_KEY)
      throw invalid("a Body secret is written `Body,json,{...}`", didYouMean(key, [BODY_KEY]).trim());
    bodyFields(value);
  },
};

/** The fields that a Body secret adds. */
export function bodyFields(value: string): Record<string, unknown> {
  const tooComplex = whyTooComplex(value, { depthMax: BODY_DEPTH_MAX, elementsMax: SECRET_LENGTH_MAX });
  if (tooComplex !== undefined) throw invalid(`its JSON ${tooComplex}`);
  let fields: unknown;
  try {
    fields = JSON.parse(value);
  } catch {
    throw invalid("the value of a Body secret must be JSON"); // The message of the parser would quote the value.
  }
  if (!isRecord(fields)) throw invalid("the value of a Body secret must be a JSON object");
  if (Object.hasOwn(fields, "__proto__")) throw invalid("its JSON has a field `__proto__`");
  return fields;
}

function isSecretType(text: string): text is SecretType {
  return (SECRET_TYPES as readonly string[]).includes(text);
}

function invalid(reason: string, hint = ""): ApiError {
  return webhooksError("SECRET_INVALID", {}, { reason, hint });
}
