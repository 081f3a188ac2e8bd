/** `millrace migrate`: brings the schema up to date without serving, for deployments that separate the two. */
import { environmentHelp, flagHelp } from "../kernel/config/describe.ts";
import { CATALOGUE } from "../modules.ts";
import type { Command } from "./common/command.ts";
import { EXIT } from "./common/exit-codes.ts";
import { print } from "./common/output.ts";

/** The server's flags that select the database. */
const FLAGS = ["--data-dir", "--config", "--log-level"];

export const migrate: Command = {
  summary: "Bring the database schema up to date",
  details: `\`millrace serve\` does this too when it starts. Migrations only go forward, each in its own
transaction; several processes may run this concurrently.`,
  args: "",
  flags: [
    { usage: "--json", description: "Print what was applied as JSON." },
    ...flagHelp(CATALOGUE.settings.server).filter(({ usage }) => FLAGS.some((flag) => usage.startsWith(`${flag} `))),
  ],
  environment: environmentHelp(CATALOGUE.settings.server)
    .split("\n")
    .filter((line) => line.startsWith("DATABASE_URL "))
    .join("\n"),
  examples: ["millrace migrate", "DATABASE_URL=postgres://millrace@db/millrace millrace migrate --json"],
  async run(given) {
    const [app, { createLog }, { migrate: bringUpToDate }, { explainDatabaseError }] = await Promise.all([
      import("../app.ts"),
      import("../kernel/telemetry/log.ts"),
      import("../kernel/data/migrate.ts"),
      import("./database-errors.ts"),
    ]);
    const cwd = process.cwd();
    const flags = { "log-level": process.env["MILLRACE_LOG_LEVEL"] || "warn", ...given.flags };
    const config = await app.configure({ env: process.env, flags, cwd });
    const printLine = (line: string) => void process.stderr.write(`${line}\n`);
    try {
      const database = await app.openDatabase({
        config,
        cwd,
        print: printLine,
        log: createLog({ level: config.logLevel }),
      });
      try {
        const { applied, version } = await bringUpToDate(database.db);
        if (given.isOn("--json")) print(JSON.stringify({ applied, version }));
        else print(report(applied, version));
      } finally {
        await database.close();
      }
    } catch (error) {
      throw explainDatabaseError(error, config.databaseUrl);
    }
    return EXIT.ok;
  },
};

function report(applied: readonly string[], version: number): string {
  if (applied.length === 0) return `The schema is up to date, at version ${version}.`;
  return [...applied.map((name) => `Applied ${name}.`), `The schema is now at version ${version}.`].join("\n");
}
