/** `millrace demo`: a complete Millrace at work, from a source to its subscribers, on this machine and without a network. */
import type { Command } from "./common/command.ts";
import { print } from "./common/output.ts";
import { stopSignals } from "./common/stop-signals.ts";

export const demo: Command = {
  summary: "Run a complete example, and check its results",
  details: `Starts a Millrace with its own Postgres in a temporary folder, and runs a scenario on it through the HTTP
API: tracked files pass their stages, a chain fetches and loads a table and is retried when its source fails, tables
arrive out of order, models wait and run, KPIs are stored and computed, and teams are notified by signed webhooks; a table
arrives again and its model reruns. Seven days of Crossref, PubMed and arXiv are harvested from simulators of their APIs, at
the rates that the real services allow, and a model counts the works of each day. Events of Spark join Millrace's own
lineage, from the API of a source to a report. A few things are left for a person: a day to be signed off, a run that
failed, a subscriber that is down. Every value in the table at the end is read through the API.

The server stays up until Ctrl-C, and then all its processes and files are removed. Meanwhile the days that follow are loaded
and harvested, with a failure now and then, so that the pages of the console move; a link that signs in to it is printed.
With --once the demo exits after the scenario. It exits with 0 only if every check holds.`,
  args: "",
  flags: [
    { usage: "--once", description: "Exit after the scenario instead of staying up." },
    { usage: "--json", description: "Print the checks as JSON, and no progress." },
  ],
  examples: [
    "millrace demo",
    "millrace demo --once",
    "millrace demo --once --json | jq '.checks[] | select(.passed | not)'",
  ],
  async run(given) {
    const json = given.isOn("--json");
    const say = (text: string) => (json ? undefined : print(text));
    const stopping = stopSignals((signal) => say(`${signal} again: stopping at once.`));
    stopping.addEventListener("abort", () => say("Stopping and cleaning up."));
    const { createOutput, openDemoServer, runDemo } = await import("../demo/index.ts");
    // Some things fail on purpose, which are warnings.
    const logLevel = process.env["MILLRACE_LOG_LEVEL"] ?? "error";
    return runDemo({
      open: (options) => openDemoServer({ ...options, logLevel }),
      once: given.isOn("--once"),
      json,
      output: createOutput(process.stdout),
      stopping,
    });
  },
};
