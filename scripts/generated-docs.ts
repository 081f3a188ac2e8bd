/**
 * The parts of the documentation that are made from the code. Each stands between two marks in its file;
 * `npm run docs` writes them and a test keeps them equal.
 */
import { instanceLease } from "../src/arrivals/store/instances.ts";
import { nodeLeases } from "../src/chains/store/live.ts";
import { taskLease } from "../src/harvest/store/queue/tasks.ts";
import { settingsAsMarkdown } from "../src/kernel/config/index.ts";
import { leaseOf } from "../src/kernel/work/outbox.ts";
import { CATALOGUE } from "../src/modules.ts";
import { stageStores } from "../src/tracking/store.ts";
import { deliveryLease } from "../src/webhooks/store/deliveries.ts";
import { sourceFields } from "./source-fields.ts";

export const GENERATED: { file: string; part: string; make: () => string }[] = [
  { file: "docs/errors.md", part: "errors", make: errorsTable },
  { file: "docs/events.md", part: "metrics", make: metricsTable },
  { file: "docs/events.md", part: "hints", make: hintsTable },
  { file: "docs/operating.md", part: "settings", make: () => settingsAsMarkdown(CATALOGUE.settings) },
  { file: "docs/leases.md", part: "leases", make: leaseStatements },
  { file: "docs/sources.md", part: "fields", make: sourceFields },
];

/** The file's text with the part between its marks replaced. */
export function withPart(text: string, part: string, content: string): string {
  const marks = new RegExp(`(<!-- ${part} -->\n)[^]*?(<!-- end of ${part} -->)`);
  if (!marks.test(text)) throw new Error(`there are no marks for ${part}`);
  return text.replace(marks, (_, begin: string, end: string) => `${begin}${content.trim()}\n${end}`);
}

function errorsTable(): string {
  const rows = Object.entries(CATALOGUE.errors).map(
    ([code, { status, sentence }]) => `| \`${code}\` | ${status} | ${sentence} |`,
  );
  return ["| code | status | sentence |", "|---|---|---|", ...rows].join("\n");
}

function metricsTable(): string {
  const rows = Object.entries(CATALOGUE.metrics).map(
    ([name, { kind, help, labels }]) =>
      `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`,
  );
  return ["| metric | kind | labels | what it tells |", "|---|---|---|---|", ...rows].join("\n");
}

function hintsTable(): string {
  const rows = Object.entries(CATALOGUE.hints).map(
    ([kind, { scope, id, help }]) => `| \`${kind}\` | ${id} | \`${scope}\` | ${help} |`,
  );
  return ["| kind | id | scope | when |", "|---|---|---|---|", ...rows].join("\n");
}

function leaseStatements(): string {
  const stages = Object.values(stageStores).map(({ lease }) => lease);
  // The outbox has a lease for each consumer; one stands for all.
  return [leaseOf("webhooks"), ...stages, ...Object.values(nodeLeases), instanceLease, deliveryLease, taskLease]
    .map(({ name, statements }) => {
      const shown = statements.map((one) => `-- ${one.name}\n${outdented(one.text)};`);
      return `## ${name}\n\n\`\`\`sql\n${shown.join("\n\n")}\n\`\`\``;
    })
    .join("\n\n");
}

/** As far to the left as its lines allow; the first one begins where its template does. */
function outdented(text: string): string {
  const [first = "", ...others] = text.split("\n");
  const indent = Math.min(...others.filter((line) => line.trim() !== "").map((line) => line.search(/\S/)));
  return [first, ...others.map((line) => line.slice(Number.isFinite(indent) ? Math.max(0, indent - 2) : 0))].join("\n");
}
