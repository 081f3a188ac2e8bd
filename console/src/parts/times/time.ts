/** Times and numbers as text, in the zone and language of the person. */
import { usePreference, zone, zoneName } from "../../app/preferences.ts";
import { useLanguage } from "../../words/words.ts";

export interface Formats {
  time(value: string | number | Date): string;
  /** Hours to seconds only. */
  clock(value: string | number | Date): string;
  number(value: number): string;
}

export function useFormats(): Formats {
  const language = useLanguage();
  const timeZone = zoneName(usePreference(zone));
  const formats = formatsOf(language, timeZone);
  return formats;
}

const cache = new Map<string, Formats>();

function formatsOf(language: string, timeZone: string): Formats {
  const key = `${language} ${timeZone}`;
  const known = cache.get(key);
  if (known) return known;
  const parts = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone } as const;
  const clock = new Intl.DateTimeFormat("sv-SE", parts);
  const whole = new Intl.DateTimeFormat("sv-SE", { ...parts, year: "numeric", month: "2-digit", day: "2-digit" });
  const number = new Intl.NumberFormat(language === "zh" ? "zh-CN" : "en");
  const formats: Formats = {
    time: (value) => whole.format(new Date(value)),
    clock: (value) => clock.format(new Date(value)),
    number: (value) => number.format(value),
  };
  cache.set(key, formats);
  return formats;
}
