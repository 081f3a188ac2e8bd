/** Transformations of columns as canonical texts, so that they can be kept as a set. */
import { isRecord } from "../../kernel/json/is-record.ts";
import { text } from "./facets.ts";

const TRANSFORMATIONS_MAX = 100;
const DESCRIPTION_LENGTH_MAX = 2_000;

/** Sorted and without repeats. What has no type is left out. */
export function transformationTexts(transformations: unknown): string[] {
  if (!Array.isArray(transformations)) return [];
  const texts: string[] = [];
  for (const transformation of transformations.slice(0, TRANSFORMATIONS_MAX)) {
    const type = isRecord(transformation) ? filled(transformation["type"]) : undefined;
    if (type === undefined) continue;
    const { subtype, description, masking } = transformation as Record<string, unknown>;
    texts.push(transformationText(type, filled(subtype), description, masking === true));
  }
  return texts.length > 1 ? [...new Set(texts)].sort() : texts;
}

/** Text that is more than blanks, without those around it. */
export function filled(value: unknown, lengthMax?: number): string | undefined {
  return typeof value === "string" ? text(value.trim(), lengthMax) : undefined;
}

/** What says nothing (an empty description, no masking) is left out, and the names are in the order of RFC 8785. */
export function transformationText(
  type: string,
  subtype: string | undefined,
  description: unknown,
  masking: boolean,
): string {
  const words = filled(description, DESCRIPTION_LENGTH_MAX);
  return JSON.stringify({
    ...(words !== undefined && { description: words }),
    ...(masking && { masking }),
    ...(subtype !== undefined && { subtype }),
    type,
  });
}
