/** The language of the person, and the texts in it. */
import { useSyncExternalStore } from "react";
import { preference } from "../app/preference.ts";
import type { Translated, Words, WordTable } from "./table.ts";

export type Language = "en" | "zh";
const LANGUAGES: readonly Language[] = ["en", "zh"];

const preferred: Language = navigator.language.startsWith("zh") ? "zh" : "en";
export const language = preference<Language>("language", preferred, (value) =>
  LANGUAGES.includes(value as Language) ? (value as Language) : undefined,
);

export function useLanguage(): Language {
  return useSyncExternalStore(language.subscribe, language.get);
}

export function useWords<Table extends WordTable>(table: Words<Table>): Translated<Table> {
  return table[useLanguage()];
}
