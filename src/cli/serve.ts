/** `millrace serve`: runs the server until it is told to stop, and greets the person who started it. */
import type { Config, Millrace } from "../app.ts";
import { environmentHelp, flagHelp } from "../kernel/config/describe.ts";
import { CLIENT_SETTINGS } from "../kernel/config/settings.ts";
import { CATALOGUE } from "../modules.ts";
import { VERSION } from "../version.ts";
import type { Command } from "./common/command.ts";
import { EXIT } from "./common/exit-codes.ts";
import { indent, pairs } from "./common/help.ts";
import { print } from "./common/output.ts";
import { stopSignals } from "./common/stop-signals.ts";

/** From cutting off what was in flight to leaving behind whatever still does not stop. */
const CUT_OFF_MS_MAX = 10_000;
/** Time for the last lines to be written. */
const LAST_WORDS_MS = 500;

export const serve: Command = {
  summary: "Run the server, with a Postgres of its own unless DATABASE_URL names one",
  details: `The first start prints an admin key, once. The server then shows its console at /, the reference of its
API at /docs and metrics at /metrics. It stops on Ctrl-C or SIGTERM after finishing what is in flight;
a second signal stops it at once.

Results and links go to standard output, the structured log to standard error: all of it when that is
a file or a pipe, warnings only when it is a terminal and no level was chosen.

A flag wins over the environment. Structured settings live in millrace.yaml; docs/operating.md tells
more.`,
  args: "",
  flags: flagHelp(CATALOGUE.settings.server),
  environment: environmentHelp(CATALOGUE.settings.server),
  examples: [
    "millrace serve",
    "millrace serve --port 8080 --data-dir /var/lib/millrace",
    "DATABASE_URL=postgres://millrace@db/millrace millrace serve --roles scheduler,worker",
    "MILLRACE_ADMIN_KEY=$(openssl rand -hex 32) millrace serve --host 0.0.0.0 2>millrace.log",
  ],
  async run({ flags }) {
    const stopping = stopSignals((signal) => print(`${signal} again: stopping at once.`));
    stopping.addEventListener("abort", () =>
      print("Stopping after what is in flight. Once more (Ctrl-C) to stop at once."),
    );
    const [app, { explainDatabaseTrouble }] = await Promise.all([import("../app.ts"), import("./database-trouble.ts")]);
    const cwd = process.cwd();
    const config = await app.configure({ env: process.env, flags: { ...quietOnTerminal(), ...flags }, cwd });
    const millrace = await app.start({ config, cwd, tell: print }).catch((error: unknown) => {
      throw explainDatabaseTrouble(error, config.databaseUrl);
    });
    // A key that was just made is told even by a start that was interrupted: no other start will.
    if (!stopping.aborted || millrace.firstAdminKey !== undefined) print(greeting(millrace));
    if (!stopping.aborted) await new Promise((resolve) => stopping.addEventListener("abort", resolve));
    const overdue = cutOffAfterGrace(millrace, config);
    await millrace.stop();
    print("Stopped.");
    const code = overdue.aborted ? EXIT.failed : EXIT.ok;
    // A node that does not listen was given back, and must not keep the process alive.
    setTimeout(() => process.exit(code), LAST_WORDS_MS).unref();
    return code;
  },
};

/** On a terminal the log would drown the greeting, with its key, in lines of JSON. */
function quietOnTerminal(): { "log-level"?: string } {
  return process.stderr.isTTY && !process.env["MILLRACE_LOG_LEVEL"] ? { "log-level": "warn" } : {};
}

function greeting({ url, firstAdminKey }: Millrace): string {
  const links: [string, string][] = [
    ["Console", `${reachable(url)}/`],
    ["API reference", `${reachable(url)}/docs`],
  ];
  if (firstAdminKey === undefined) return `\nMillrace ${VERSION} is ready.\n\n${pairs(links)}\n`;
  // Commands look for a server on this machine at the usual port unless they are told.
  const elsewhere = reachable(url) === CLIENT_SETTINGS.url.default ? [] : [`export MILLRACE_URL=${reachable(url)}`];
  const exports = [...elsewhere, `export MILLRACE_KEY=${firstAdminKey}`];
  // Started from a checkout by `npm start`, the command is not on the PATH of the next terminal.
  const command = process.env["npm_lifecycle_event"] ? "npx millrace" : "millrace";
  return `
Millrace ${VERSION} is ready.

${pairs([...links, ["Admin key", firstAdminKey]])}

Keep the admin key in a safe place: it is shown only this once. Commands take it from the environment:

${indent([...exports, `${command} doctor`])}
`;
}

/** A server that listens on every address is reached from here by this one. */
function reachable(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

/**
 * Ends what is in flight when the grace period does, so that the stop goes on and leaves no Postgres running. Neither
 * timer keeps the process alive: they only end one that something else keeps alive for too long.
 */
function cutOffAfterGrace({ http }: Millrace, { shutdownGraceSeconds }: Config): AbortSignal {
  const overdue = AbortSignal.timeout(shutdownGraceSeconds * 1000);
  overdue.addEventListener("abort", () => {
    process.stderr.write(`Not everything in flight was finished within ${shutdownGraceSeconds} s: cutting it off.\n`);
    http.server.closeAllConnections();
    setTimeout(exitHard, CUT_OFF_MS_MAX).unref();
  });
  return overdue;
}

function exitHard(): void {
  process.stderr.write(`Something still does not stop after another ${CUT_OFF_MS_MAX / 1000} s: exiting without it.\n`);
  process.exit(EXIT.failed);
}
