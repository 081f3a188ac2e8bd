/** What the documents say about the code is compared with the code. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { GENERATED, withPart } from "../scripts/generated-docs.ts";

const DOCUMENTS = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "docs/architecture.md",
  "docs/arrivals.md",
  "docs/chains.md",
  "docs/console.md",
  "docs/engines.md",
  "examples/README.md",
  "docs/errors.md",
  "docs/events.md",
  "docs/gates.md",
  "docs/harvest.md",
  "docs/leases.md",
  "docs/lineage.md",
  "docs/operating.md",
  "docs/performance.md",
  "docs/sources.md",
  "docs/tracking.md",
  "docs/webhooks.md",
];

describe("the documents", () => {
  for (const { file, part, make } of GENERATED) {
    test(`${file} lists the ${part} that the code has (npm run docs writes it)`, () => {
      const text = readFileSync(file, "utf8");
      expect(text).toBe(withPart(text, part, make()));
    });
  }

  test("name only npm scripts that exist", () => {
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
    for (const document of DOCUMENTS) {
      const named = [...readFileSync(document, "utf8").matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name);
      expect(Object.keys(scripts), document).toEqual(expect.arrayContaining(named));
    }
  });

  test("docs/events.md lists log messages that the code writes", () => {
    const logs = readFileSync("docs/events.md", "utf8").split("## Logs")[1]?.split("## ")[0] ?? "";
    const messages = [...logs.matchAll(/^\| `([^`]+)` \|/gm)].map(([, message = ""]) => message);
    const sources = readdirSync("src", { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
      .map((name) => readFileSync(join("src", name), "utf8"))
      .join("\n");
    expect(messages.length).toBeGreaterThan(5);
    expect(messages.filter((message) => !sources.includes(`"${message}"`))).toEqual([]);
  });

  test("name only source files that exist", () => {
    for (const document of DOCUMENTS) {
      const named = [
        ...readFileSync(document, "utf8").matchAll(/\b(?:src|test|sql|bench|scripts)\/[\w./-]+\.(?:ts|js|sql)\b/g),
      ];
      for (const [path] of named) expect(existsSync(path), `${document} names ${path}`).toBe(true);
    }
  });

  test("link only to files that exist", () => {
    for (const document of DOCUMENTS) {
      const links = [...readFileSync(document, "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(
        ([, link = ""]) => link,
      );
      for (const link of links)
        expect(existsSync(join(dirname(document), link)), `${document} links to ${link}`).toBe(true);
    }
  });
});
