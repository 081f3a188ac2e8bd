#!/usr/bin/env node
/** The program `millrace`. All but the start is in `cli/main.ts`, which tests run inside their own process. */
import { main } from "./cli/main.ts";

// A closed pipe (`| head -1`) is no reason to fail, least of all for a server.
process.stdout.on("error", () => undefined);

process.exitCode = await main(process.argv.slice(2));
