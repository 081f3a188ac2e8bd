/** The texts of the console: every one has both languages, none is left untranslated, and none is left over. */
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

test("no text is left that the console does not show", async () => {
  const texts = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".test.ts"))
    .map((name) => readFileSync(join(SOURCE, name), "utf8"));
  const source = texts.filter((text) => !/= words\(/.test(text)).join("\n");
  const mentioned = new Set(source.match(/\w+/g));
  // Keys that are put together, such as `reason_${code}` and `${state}_means`.
  const beginnings = [...source.matchAll(/`(\w{3,})\$\{/g)].map(([, text = ""]) => text);
  const ends = [...source.matchAll(/\}(_\w+)`/g)].map(([, text = ""]) => text);
  const isShown = (key: string) =>
    mentioned.has(key) ||
    beginnings.some((text) => key.startsWith(text)) ||
    ends.some((text) => key.endsWith(text) && mentioned.has(key.slice(0, -text.length)));
  const unused = (await tables()).flatMap(({ file, en }) =>
    Object.keys(en)
      .filter((key) => !isShown(key))
      .map((key) => `${file}: ${key}`),
  );
  expect(unused).toEqual([]);
});
