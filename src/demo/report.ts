/** The output at the end of the demo: a table of the results, the failed checks, and commands to try. */
import { indent, pairs } from "../cli/common/help.ts";
import { paint, printable, table } from "../cli/common/output.ts";
import { type Check, holds } from "./checks.ts";
import type { Link } from "./links.ts";

export function report(checks: readonly Check[], seconds: number): string {
  const rows = checks.map((check) => [holds(check) ? "✓" : "✗", check.what, check.found, check.source]);
  return `\n${table(["", "WHAT HAPPENED", "READ BACK", "FROM"], rows)}\n\n${conclusion(checks, seconds)}`;
}

function conclusion(checks: readonly Check[], seconds: number): string {
  const failed = checks.filter((check) => !holds(check));
  if (failed.length === 0) return paint("green", `All ${checks.length} checks hold, after ${seconds.toFixed(1)} s.`);
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
  links: readonly Link[];
  /** The newest day of the scenario. */
  opTime: string;
}

export function nextSteps({ url, key, links, opTime }: NextSteps): string {
  // `npm run demo` from a checkout does not put the command on the PATH of other terminals.
  const command = process.env["npm_lifecycle_event"] ? "npx millrace" : "millrace";
  return `
This Millrace runs until Ctrl-C and then removes all that it created. Days that follow are loaded and harvested meanwhile.

Links into the console, each of which signs in once, within 15 minutes:

${pairs(links.map((link) => [link.name, link.url]))}

${pairs([
  ["API reference", `${url}/docs`],
  ["Admin key", key],
])}

Three things to try in another terminal:

${indent([
  `export MILLRACE_URL=${url} MILLRACE_KEY=${key}`,
  `${command} arrive ORDERS ${opTime}                        # SALES runs again, and both teams are notified`,
  `${command} kpi why SALES ${opTime}                        # which run used which arrival, and what would start another`,
  `${command} chain start orders --op-time ${opTime} --watch # fetch, load and announce, shown live`,
])}
`;
}
