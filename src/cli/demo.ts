/** `millrace demo`: a whole Millrace at work, from a source to its subscribers, on this machine and without a network. */
import type { Command } from "./common/command.ts";
import { print } from "./common/output.ts";
import { stopSignals } from "./common/stop-signals.ts";

export const demo: Command = {
  summary: "Show a whole Millrace at work, and check what it did",
  details: `Starts a Millrace with a Postgres of its own in a temporary folder, and plays a story on it through the HTTP
API: tracked files go through their stages, a chain fetches and loads a table and is retried when its source fails,
tables arrive out of order, models wait and run, KPIs are stored and computed, and two teams are told by signed webhooks;
then a table arrives again and its model reruns. Every number of the table at the end is read back through the API.

It stays up until Ctrl-C, for you to look around, and leaves neither a process nor a file behind. With --once it exits
after the story. It exits with 0 only if every check of the story holds.`,
  args: "",
  flags: [
    { usage: "--once", description: "Exit after the story instead of staying up." },
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
    stopping.addEventListener("abort", () => say("Stopping, and cleaning up."));
    const { openHouse, playDemo } = await import("../demo/index.ts");
    const logLevel = process.env["MILLRACE_LOG_LEVEL"] ?? "warn";
    return playDemo({
      open: (tell) => openHouse({ tell, logLevel }),
      once: given.isOn("--once"),
      json,
      print,
      stopping,
    });
  },
};
