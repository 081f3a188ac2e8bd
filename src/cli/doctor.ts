/** `millrace doctor`: checks this machine and the connection to the server, and runs the server's own checks. */
import type { Finding } from "../kernel/doctor.ts";
import { OperatorError } from "../kernel/errors.ts";
import { nodeAdvice } from "../kernel/node-version.ts";
import { VERSION } from "../version.ts";
import type { Client } from "./common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor } from "./common/client-command.ts";
import type { Command } from "./common/command.ts";
import { EXIT } from "./common/exit-codes.ts";
import { padEnd, paint, print, printable } from "./common/output.ts";

export const doctor: Command = {
  summary: "Find out what is wrong, and what to do about it",
  details: `Checks this machine and the connection to the server, then runs the checks of the server: version, database,
schema, disk, clock, stuck leases, bloat. Exits with 0 if nothing is broken (there may be warnings), with 1 if
something is, with 5 if MILLRACE_KEY is missing or lacks the scope admin, and with 6 if the server cannot be
reached.`,
  args: "",
  flags: [{ usage: "--json", description: "Print the findings as JSON." }, ...CLIENT_FLAGS],
  environment: CLIENT_ENVIRONMENT,
  examples: ["millrace doctor", "millrace doctor --json | jq '.findings[] | select(.verdict != \"ok\")'"],
  async run(given) {
    const { findings, exitCode } = await examine(clientFor(given));
    print(given.isOn("--json") ? JSON.stringify({ findings }) : report(findings));
    if (exitCode !== EXIT.ok) return exitCode;
    return findings.some(({ verdict }) => verdict === "broken") ? EXIT.failed : EXIT.ok;
  },
};

async function examine(client: Client): Promise<{ findings: Finding[]; exitCode: number }> {
  const findings = [thisProgram()];
  try {
    await client.call({ method: "GET", path: "readyz" });
    findings.push({ check: "server", verdict: "ok", found: `A server is ready at ${client.url}.` });
  } catch (error) {
    const { message, exitCode } = operatorError(error);
    findings.push({ check: "server", verdict: "broken", found: message });
    return { findings, exitCode };
  }
  try {
    const reply = await client.call<{ findings: Finding[] }>({ method: "GET", path: "api/v1/doctor" });
    return { findings: [...findings, ...reply.findings], exitCode: EXIT.ok };
  } catch (error) {
    const { message, exitCode } = operatorError(error);
    const refused = exitCode === EXIT.notAllowed;
    findings.push({ check: refused ? "key" : "server", verdict: "broken", found: message });
    return { findings, exitCode };
  }
}

function thisProgram(): Finding {
  const found = `This is Millrace ${VERSION} on Node ${process.versions.node}.`;
  const advice = nodeAdvice();
  if (advice === undefined) return { check: "client", verdict: "ok", found };
  return { check: "client", verdict: "broken", found, advice };
}

function operatorError(error: unknown): OperatorError {
  if (error instanceof OperatorError) return error;
  throw error;
}

const STYLES = { ok: "green", warning: "yellow", broken: "red" } as const;

function report(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  return findings
    .map(({ check, verdict, found, advice }) => {
      const line = `${paint(STYLES[verdict], padEnd(verdict, 7))}  ${padEnd(check, width)}  ${printable(found)}`;
      return advice === undefined ? line : `${line}\n${" ".repeat(width + 11)}${printable(advice)}`;
    })
    .join("\n");
}
