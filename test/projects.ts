/**
 * Finds what kind a test file is from the imports of the file and its helpers, so that there is no list to maintain.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Vitest } from "vitest/node";

export type Kind = "isolated" | "processes" | "database" | "pure";

/** The first rule that matches the file or one of its helpers applies; without a match the file is pure. */
const RULES: readonly { kind: Kind; has: RegExp }[] = [
  // `vi` replaces modules, clocks and the environment, also for other files in the same worker.
  { kind: "isolated", has: importOf("vi", "vitest") },
  { kind: "processes", has: /^import [^;]*from "(?:node:child_process|playwright-core)"/m },
  // `inject` gives the shared Postgres of the run.
  { kind: "database", has: importOf("inject", "vitest") },
];

function importOf(name: string, from: string): RegExp {
  return new RegExp(`^import \\{[^}]*\\b${name}\\b[^}]*\\} from "${from}"`, "m");
}

export type Read = (path: string) => string | undefined;

/** `read` returns the text of a file, or undefined if it does not exist. */
export function kindOf(path: string, read: Read = readIfThere): Kind {
  const texts = [...withHelpers(path, read).values()];
  return RULES.find(({ has }) => texts.some((text) => has.test(text)))?.kind ?? "pure";
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

/** Every test file of each kind. */
export function testFiles(): Record<Kind, string[]> {
  const files: Record<Kind, string[]> = { isolated: [], processes: [], database: [], pure: [] };
  for (const folder of ["src", "test", "bench", "console"]) {
    const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
    for (const name of names) {
      const path = join(folder, name);
      if (path.endsWith(".test.ts")) files[kindOf(path)].push(path);
    }
  }
  return files;
}

/** Whether the run has a file of one of these kinds, so that a part of the tests waits for what it needs only. */
export function runs({ state, config }: Vitest, ...kinds: readonly Kind[]): boolean {
  return state.getPaths().some((path) => kinds.includes(kindOf(relative(config.root, path))));
}
