/**
 * Finds the vitest project of a test file from the imports of the file and its helpers, so that there is no list to
 * maintain.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type Project = "isolated" | "processes" | "database" | "pure";

/** The first rule that matches the file or one of its helpers applies; without a match the file is pure. */
const RULES: readonly { project: Project; has: RegExp }[] = [
  // `vi` replaces modules, clocks and the environment, also for other files in the same worker.
  { project: "isolated", has: importOf("vi", "vitest") },
  { project: "processes", has: /^import [^;]*from "(?:node:child_process|playwright-core)"/m },
  // `inject` gives the shared Postgres of the run.
  { project: "database", has: importOf("inject", "vitest") },
];

function importOf(name: string, from: string): RegExp {
  return new RegExp(`^import \\{[^}]*\\b${name}\\b[^}]*\\} from "${from}"`, "m");
}

export type Read = (path: string) => string | undefined;

/** `read` returns the text of a file, or undefined if it does not exist. */
export function projectOf(path: string, read: Read = readIfThere): Project {
  const texts = [...withHelpers(path, read).values()];
  return RULES.find(({ has }) => texts.some((text) => has.test(text)))?.project ?? "pure";
}

/** The file and the test helpers that it imports, directly or not. Imports of the product do not matter. */
function withHelpers(path: string, read: Read, found = new Map<string, string>()): Map<string, string> {
  const text = found.has(path) ? undefined : read(path);
  if (text === undefined) return found;
  found.set(path, text);
  for (const [, target = ""] of text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)) {
    const imported = join(path, "..", target);
    if (isHelper(imported)) withHelpers(imported, read, found);
  }
  return found;
}

function isHelper(path: string): boolean {
  return path.endsWith(".fixture.ts") || /^(test|bench|scripts)\//.test(path);
}

function readIfThere(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

/** Every test file of each project. */
export function testFiles(): Record<Project, string[]> {
  const files: Record<Project, string[]> = { isolated: [], processes: [], database: [], pure: [] };
  for (const folder of ["src", "test", "bench", "console"]) {
    const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
    for (const name of names) {
      const path = join(folder, name);
      if (path.endsWith(".test.ts")) files[projectOf(path)].push(path);
    }
  }
  return files;
}
