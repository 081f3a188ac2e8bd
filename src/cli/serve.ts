/** `millrace serve`: runs the server until a signal, and prints its address, a link to the console and the first key. */
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

/** From closing the connections to exiting although something still runs. */
const FORCED_STOP_MS_MAX = 10_000;
/** Time for the last output to be written. */
const FLUSH_MS = 500;

export const serve: Command = {
  summary: "Run the server, with its own Postgres unless DATABASE_URL is set",
  details: `The first start prints an admin key, once. Each start of a process with the role api prints a link that signs in
to the console, once and within 15 minutes; millrace console prints another. The console is at /, the API
reference at /docs and metrics are at /metrics. On Ctrl-C or SIGTERM the server finishes the work in flight and stops; a second signal stops it
at once.

Links go to standard output, the structured log to standard error. On a terminal only warnings are logged,
unless a level is set.

A flag takes precedence over the environment. Structured settings are in millrace.yaml; see
docs/operating.md.`,
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
      print("Stopping when the work in flight is done. Press Ctrl-C again to stop at once."),
    );
    const [app, { explainDatabaseError }] = await Promise.all([import("../app.ts"), import("./database-errors.ts")]);
    const cwd = process.cwd();
    const config = await app.configure({ env: process.env, flags: { ...quietOnTerminal(), ...flags }, cwd });
    const millrace = await app.start({ config, cwd, print }).catch((error: unknown) => {
      throw explainDatabaseError(error, config.databaseUrl);
    });
    // A new key is printed even if the start was interrupted, because no later start prints it.
    if (!stopping.aborted || millrace.firstAdminKey !== undefined) {
      print(readyMessage(millrace, await consolePath(millrace)));
    }
    if (!stopping.aborted) await new Promise((resolve) => stopping.addEventListener("abort", resolve));
    const overdue = disconnectAfterGrace(millrace, config);
    await millrace.stop();
    print("Stopped.");
    const code = overdue.aborted ? EXIT.failed : EXIT.ok;
    // A node that ignores its signal was released and must not keep the process alive.
    setTimeout(() => process.exit(code), FLUSH_MS).unref();
    return code;
  },
};

/** On a terminal, lines of JSON would hide the message with the key. */
function quietOnTerminal(): { "log-level"?: string } {
  return process.stderr.isTTY && !process.env["MILLRACE_LOG_LEVEL"] ? { "log-level": "warn" } : {};
}

/** The path of a link that signs in. Without one the console asks for a key, so a failure is no reason to hide the first key. */
async function consolePath(millrace: Millrace): Promise<string> {
  const link = await millrace.newConsoleLink().catch(() => undefined);
  return link ? `/login#${link.code}` : "/";
}

function readyMessage({ url, roles, firstAdminKey }: Millrace, path: string): string {
  const isApi = roles.includes("api");
  const links: [string, string][] = isApi
    ? [
        ["Console", `${reachable(url)}${path}`],
        ["API reference", `${reachable(url)}/docs`],
      ]
    : [
        ["Roles", `${roles.join(", ")}; console and API are at a process with the role api`],
        ["Health", `${reachable(url)}/readyz`],
        ["Metrics", `${reachable(url)}/metrics`],
      ];
  const once = path === "/" ? "" : "\nThe link to the console signs in once, within 15 minutes.\n";
  if (firstAdminKey === undefined) return `\nMillrace ${VERSION} is ready.\n\n${pairs(links)}\n${once}`;
  // Commands call the default port of this machine unless MILLRACE_URL is set.
  const elsewhere =
    !isApi || reachable(url) === CLIENT_SETTINGS.url.default ? [] : [`export MILLRACE_URL=${reachable(url)}`];
  const exports = [...elsewhere, `export MILLRACE_KEY=${firstAdminKey}`];
  // `npm start` from a checkout does not put the command on the PATH of other terminals.
  const command = process.env["npm_lifecycle_event"] ? "npx millrace" : "millrace";
  return `
Millrace ${VERSION} is ready.

${pairs([...links, ["Admin key", firstAdminKey]])}
${once}
Keep the admin key in a safe place: it is shown only this once. Commands take it from the environment:

${indent([...exports, `${command} doctor`])}
`;
}

/** An address for this machine, if the server listens on all addresses. */
function reachable(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

/**
 * Closes all connections after the grace period, so that the stop can finish and no Postgres is left running. The timers do
 * not keep the process alive.
 */
function disconnectAfterGrace({ http }: Millrace, { shutdownGraceSeconds }: Config): AbortSignal {
  const overdue = AbortSignal.timeout(shutdownGraceSeconds * 1000);
  overdue.addEventListener("abort", () => {
    process.stderr.write(`Work in flight did not finish within ${shutdownGraceSeconds} s: closing its connections.\n`);
    http.server.closeAllConnections();
    setTimeout(exitHard, FORCED_STOP_MS_MAX).unref();
  });
  return overdue;
}

function exitHard(): void {
  process.stderr.write(`Something still runs after another ${FORCED_STOP_MS_MAX / 1000} s: exiting anyway.\n`);
  process.exit(EXIT.failed);
}
