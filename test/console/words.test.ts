/** The texts of the console: every one has both languages, and none is left untranslated. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const SOURCE = "console/src";
/** Names and signs that are the same in both languages. */
const SAME: ReadonlySet<string> = new Set(["SQL", "YAML", "JSON", "CSV", "KPI", "ID", "URL", "UTC"]);
const ARGUMENTS = ["a", "b", "c", "d", "e"];

type Texts = Record<string, string | ((...values: unknown[]) => string)>;
interface Table {
  file: string;
  en: Texts;
  zh: Texts;
}

async function tables(): Promise<Table[]> {
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
    .map((name) => join(SOURCE, name))
    .filter((file) => file.endsWith(".ts") && /= words\(/.test(readFileSync(file, "utf8")));
  const found: Table[] = [];
  for (const file of files) {
    const exported = (await import(`../../${file}`)) as Record<string, Pick<Table, "en" | "zh">>;
    for (const { en, zh } of Object.values(exported)) found.push({ file, en, zh });
  }
  return found;
}

function shown(text: Texts[string] | undefined): string {
  return typeof text === "function" ? text(...ARGUMENTS) : String(text);
}

test("both languages have the same texts, and no Chinese text is the English one", async () => {
  const all = await tables();
  expect(all.length).toBeGreaterThan(1);
  const problems = all.flatMap(({ file, en, zh }) => [
    ...[...Object.keys(en), ...Object.keys(zh)]
      .filter((key) => !(key in en && key in zh))
      .map((key) => `${file}: ${key} is in one language only`),
    ...Object.keys(en)
      .filter((key) => shown(en[key]) === shown(zh[key]) && !SAME.has(shown(en[key])))
      .map((key) => `${file}: ${key} is not translated`),
    ...[...Object.entries(en), ...Object.entries(zh)]
      .filter(([, text]) => shown(text).trim() === "")
      .map(([key]) => `${file}: ${key} is empty`),
  ]);
  expect(problems).toEqual([]);
});
