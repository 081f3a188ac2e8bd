/** Values of expressions as texts of a request. */

/** A request that cannot be sent. The message contains no value, since a value may be a secret. */
export class RenderError extends Error {
  /** The field of the policy, such as `http.query.rows`. */
  readonly param: string;
  /** A sentence. */
  readonly reason: string;

  constructor(param: string, reason: string) {
    super(`\`${param}\`: ${reason}`);
    this.name = "RenderError";
    this.param = param;
    this.reason = reason;
  }
}

/** The values of a list, or the one value; none for null, unless null is sent as an empty text. */
export function textsOf(value: unknown, field: string, keepsNull: boolean): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => textsOf(one, field, keepsNull));
  const text = textOf(value, field);
  return text === undefined ? (keepsNull ? [""] : []) : [text];
}

/** Undefined for null. */
export function textOf(value: unknown, field: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "object") throw new RenderError(field, "Its value is an object, which is not text.");
  if (typeof value !== "string") return JSON.stringify(value);
  // Half of a surrogate pair cannot be encoded.
  if (/\p{Surrogate}/u.test(value)) throw new RenderError(field, "Its value contains half of a surrogate pair.");
  return value;
}

const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** A line break in a header would begin another header. */
export function headerText(text: string, field: string): string {
  if (HEADER_VALUE.test(text)) return text;
  throw new RenderError(field, "Its value has a character that a header cannot have, such as a line break.");
}
