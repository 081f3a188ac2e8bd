/** The output at the end of the demo: a table of the results, the failed checks, and commands to try. */
import { stripVTControlCharacters } from "node:util";
import { indent, wrap } from "../cli/common/help.ts";
import { displayWidth, paint, printable, table } from "../cli/common/output.ts";
import { type Check, holds } from "./checks.ts";
import type { Links } from "./links.ts";

/** `  3.9 s  orders: fetch is done`, broken at words. */
export function timed(seconds: number, line: string, columns: number): string {
  const time = `${seconds.toFixed(1).padStart(5)} s  `;
  return time + wrap(line, " ".repeat(time.length), columns);
}

/** Drops the column SOURCE if the table would be too wide. */
export function report(checks: readonly Check[], seconds: number, columns: number): string {
  const rows = checks.map((check) => [holds(check) ? "✓" : "✗", check.what, check.found, check.source]);
  const whole = table(["", "CHECK", "RESULT", "SOURCE"], rows);
  const isFitting = whole.split("\n").every((row) => displayWidth(stripVTControlCharacters(row)) <= columns);
  const shown = isFitting ? whole : table(["", "CHECK", "RESULT"], rows);
  return `\n${shown}\n\n${conclusion(checks, seconds)}`;
}

function conclusion(checks: readonly Check[], seconds: number): string {
  const failed = checks.filter((check) => !holds(check));
  if (failed.length === 0) return paint("green", `All ${checks.length} checks passed in ${seconds.toFixed(1)} s.`);
  const lines = failed.map(({ what, found, expected }) => printable(`${what}: ${expected} expected, ${found} found`));
  return `${paint("red", `${failed.length} of ${checks.length} checks failed:`)}\n${indent(lines)}`;
}

export function reportJson(checks: readonly Check[], seconds: number, server: object): string {
  const passed = checks.every(holds);
  return JSON.stringify({
    passed,
    seconds: Number(seconds.toFixed(3)),
    ...server,
    checks: checks.map((check) => ({ ...check, passed: holds(check) })),
  });
}

/** Printed when the demo stays up. */
export interface NextSteps {
  url: string;
  key: string;
  links: Links;
  /** The newest day of the scenario. */
  opTime: string;
  columns: number;
}

/** No line is wider than 80 columns: a link or a command that is broken cannot be copied. */
export function nextSteps({ url, key, links: { signIn, pages }, opTime, columns }: NextSteps): string {
  // `npm run demo` from a checkout does not put the command on the PATH of other terminals.
  const command = process.env["npm_lifecycle_event"] ? "npx millrace" : "millrace";
  // A link that would wrap is shortened; it then opens the overview of the last day.
  const link = signIn.length + 2 <= columns ? signIn : signIn.replace(/\?[^#]*/, "");
  return `
${wrap("This Millrace runs until you press Ctrl-C and then removes everything it created. Until then it keeps loading and harvesting further days.", "", columns)}

Sign in to the console with this link (valid once, for 15 minutes):

  ${link}

Pages to look at on ${url}:

${indent(pages.map(({ name, path }) => `${name.padEnd(NAME_WIDTH)}${path}`))}

The API reference is at ${url}/docs.

Three things to try in another terminal:

${indent([
  `export MILLRACE_URL=${url}`,
  `export MILLRACE_KEY=${key}`,
  "# SALES runs again, and both teams are notified",
  `${command} arrive ORDERS ${opTime}`,
  "# Which run used which arrival, and what would start another",
  `${command} kpi why SALES ${opTime}`,
  "# Fetch, load and announce, shown live",
  `${command} chain start orders --op-time ${opTime} --watch`,
])}
`;
}

const NAME_WIDTH = 18;
