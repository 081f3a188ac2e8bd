/**
 * A TypeScript program for child processes as one JavaScript file. tsx takes a second of processor time in each process that
 * it starts; this takes 0.1 s once.
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { rolldown } from "rolldown";
import { PACKAGE_ROOT } from "../src/kernel/package-root.ts";

/** Among the packages, so that the programs find them. */
const FOLDER = join(PACKAGE_ROOT, "node_modules/.cache/millrace-test");
const programs = new Map<string, Promise<string>>();

/** The path of the JavaScript file. */
export function programOf(source: string): Promise<string> {
  const known = programs.get(source) ?? bundled(source);
  programs.set(source, known);
  return known;
}

async function bundled(source: string): Promise<string> {
  const bundle = await rolldown({ input: source, platform: "node", external: /^[^./]/, logLevel: "warn" });
  const { output } = await bundle.generate({ format: "esm", codeSplitting: false });
  await bundle.close();
  mkdirSync(FOLDER, { recursive: true });
  const path = join(FOLDER, `${relative(PACKAGE_ROOT, source).replaceAll("/", "-")}.js`);
  writeFileSync(`${path}.${process.pid}`, output[0].code);
  renameSync(`${path}.${process.pid}`, path); // Several workers may write it.
  return path;
}
