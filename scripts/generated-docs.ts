/**
 * The parts of the documentation that are made from the code. Each stands between two marks in its file;
 * `npm run docs` writes them and a test keeps them equal.
 */
import { settingsAsMarkdown } from "../src/kernel/config/index.ts";
import { CATALOGUE } from "../src/kernel/errors.ts";
import { METRICS } from "../src/kernel/telemetry/metrics.ts";

export const GENERATED: { file: string; part: string; make: () => string }[] = [
  { file: "docs/errors.md", part: "errors", make: errorsTable },
  { file: "docs/events.md", part: "metrics", make: metricsTable },
  { file: "docs/operating.md", part: "settings", make: settingsAsMarkdown },
];

/** The file's text with the part between its marks replaced. */
export function withPart(text: string, part: string, content: string): string {
  const marks = new RegExp(`(<!-- ${part} -->\n)[^]*?(<!-- end of ${part} -->)`);
  if (!marks.test(text)) throw new Error(`there are no marks for ${part}`);
  return text.replace(marks, (_, begin: string, end: string) => `${begin}${content.trim()}\n${end}`);
}

function errorsTable(): string {
  const rows = Object.entries(CATALOGUE).map(
    ([code, { status, sentence }]) => `| \`${code}\` | ${status} | ${sentence} |`,
  );
  return ["| code | status | sentence |", "|---|---|---|", ...rows].join("\n");
}

function metricsTable(): string {
  const rows = Object.entries(METRICS).map(
    ([name, { kind, help, labels }]) =>
      `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`,
  );
  return ["| metric | kind | labels | what it tells |", "|---|---|---|---|", ...rows].join("\n");
}
