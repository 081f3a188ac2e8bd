/** Theme and time zone, as the person has chosen them. */
import { useSyncExternalStore } from "react";
import { type Preference, preference } from "./preference.ts";

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];
export const theme = preference<Theme>("theme", "system", (value) => THEMES.find((one) => one === value));

/** `UTC`, `browser`, or the name of a zone such as `Asia/Shanghai`. */
export const zone = preference<string>("zone", "UTC", (value) => (isZone(value) ? value : undefined));

export function usePreference<Value extends string>({ subscribe, get }: Preference<Value>): Value {
  return useSyncExternalStore(subscribe, get);
}

/** For `Intl`. */
export function zoneName(value: string): string {
  return value === "browser" ? Intl.DateTimeFormat().resolvedOptions().timeZone : value;
}

export function applyTheme(): void {
  const value = theme.get();
  if (value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = value;
}

function isZone(value: string): boolean {
  try {
    Intl.DateTimeFormat("en", { timeZone: zoneName(value) });
    return true;
  } catch {
    return false;
  }
}
