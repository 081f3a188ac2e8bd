/** `millrace demo`: a complete Millrace at work, from a source to its subscribers, on this machine and without a network. */
import type { Command } from "./common/command.ts";
import { print } from "./common/output.ts";
import { stopSignals } from "./common/stop-signals.ts";

export const demo: Command = {
  summary: "Run a complete example, and check its results",
  details: `Starts a Millrace with its own Postgres in a temporary folder, and runs a scenario on it through the HTTP
API: tracked files pass their stages, a chain fetches and loads a table and is retried when its source fails, tables
arrive out of order, models wait and run, KPIs are stored and computed, and two teams are notified by signed webhooks;
then a table arrives again and its model reruns. Every value in the table at the end is read through the API.

The server stays up until Ctrl-C, and then all its processes and files are removed. With --once the demo exits after the
scenario. It exits with 0 only if every check holds.`,
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
    const { openDemoServer, runDemo } = await import("../demo/index.ts");
    const logLevel = process.env["MILLRACE_LOG_LEVEL"] ?? "warn";
    return runDemo({
      open: (printLine) => openDemoServer({ printLine, logLevel }),
      once: given.isOn("--once"),
      json,
      print,
      stopping,
    });
  },
};
