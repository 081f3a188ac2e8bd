/** The time zones to choose from. */

/** Browsers list some zones by names of the last century, by which nobody looks for them. */
const RENAMED: Readonly<Record<string, string>> = {
  "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
  "America/Godthab": "America/Nuuk",
  "America/Indianapolis": "America/Indiana/Indianapolis",
  "America/Louisville": "America/Kentucky/Louisville",
  "Asia/Calcutta": "Asia/Kolkata",
  "Asia/Katmandu": "Asia/Kathmandu",
  "Asia/Rangoon": "Asia/Yangon",
  "Asia/Saigon": "Asia/Ho_Chi_Minh",
  "Atlantic/Faeroe": "Atlantic/Faroe",
  "Europe/Kiev": "Europe/Kyiv",
  "Pacific/Ponape": "Pacific/Pohnpei",
  "Pacific/Truk": "Pacific/Chuuk",
};

/** UTC and the zone of the browser first. */
export function zoneNames(chosen: string): readonly string[] {
  const known = Intl.supportedValuesOf("timeZone").map((name) => RENAMED[name] ?? name);
  const others = new Set([...known, chosen]);
  return [...new Set(["UTC", "browser", ...[...others].toSorted()])];
}
