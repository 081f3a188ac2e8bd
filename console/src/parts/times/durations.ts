/** Durations and shares as text, in the language of the person. */
import { common } from "../../words/common.ts";
import { language } from "../../words/words.ts";
import { formatDuration } from "./format-duration.ts";

export function durationText(ms: number): string {
  return formatDuration(ms, common[language.get()]);
}

/** `50%`, of a share from 0 to 1. */
export function percentText(share: number): string {
  return `${Math.round(share * 100)}%`;
}
