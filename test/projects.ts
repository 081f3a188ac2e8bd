/**
 * Which vitest project a test file belongs to. What the file and its helpers use decides, so that there is no list to keep
 * and a file may be moved or rewritten at will.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type Project = "isolated" | "processes" | "database" | "pure";

/** The first of these imports that a file or one of its helpers has decides; one that has none of them is pure. */
const RULES: readonly { project: Project; has: RegExp }[] = [
  // `vi` replaces modules, clocks and the environment, which other files in the same worker would find replaced.
  { project: "isolated", has: importOf("vi", "vitest") },
  { project: "processes", has: /^import [^;]*from "node:child_process"/m },
  // What is injected is the Postgres of the run.
  { project: "database", has: importOf("inject", "vitest") },
];

function importOf(name: string, from: string): RegExp {
  return new RegExp(`^import \\{[^}]*\\b${name}\\b[^}]*\\} from "${from}"`, "m");
}

export type Read = (path: string) => string | undefined;

/** `read` gives the text of a file, or nothing if there is none. */
export function projectOf(path: string, read: Read = readIfThere): Project {
  const texts = [...withHelpers(path, read).values()];
  return RULES.find(({ has }) => texts.some((text) => has.test(text)))?.project ?? "pure";
}

/** The file and, at any distance, the test helpers that it imports. What the product itself imports says nothing of the test. */
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
  for (const folder of ["src", "test", "bench"]) {
    const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
    for (const name of names) {
      const path = join(folder, name);
      if (path.endsWith(".test.ts")) files[projectOf(path)].push(path);
    }
  }
  return files;
}
