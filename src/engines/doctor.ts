/** Checks that the engines on other servers answer. */
import type { DoctorCheck } from "../kernel/doctor.ts";
import type { Engine, Engines } from "./engine.ts";

/** Leaves DuckDB out: opening its file here would lock it against the process that uses it. */
export function engineChecks(engines: Engines): DoctorCheck[] {
  return engines
    .names()
    .map((name) => engines.get(name))
    .filter(({ kind }) => kind !== "duckdb")
    .map((engine) => ({ name: `engine ${engine.name}`, look: () => answers(engine) }));
}

async function answers({ name, kind, health }: Engine): ReturnType<DoctorCheck["look"]> {
  try {
    await health();
    return { verdict: "ok", found: `The engine \`${name}\` (${kind}) answers.` };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return {
      verdict: "broken",
      found: `The engine \`${name}\` (${kind}) does not answer: ${message || code}`,
      advice: "Check its server, and its settings under `engines` in millrace.yaml.",
    };
  }
}
