/** Whether the engines on servers of their own answer. */
import type { DoctorCheck } from "../kernel/doctor.ts";
import type { Engine, Engines } from "./engine.ts";

/** DuckDB is not asked: this process would open the file, and keep it from the one that works on it. */
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
      advice: "Look at its server, and at its settings under `engines` in millrace.yaml.",
    };
  }
}
