/** The tables of docs/sources.md: every field of a definition, made from its schema and the platform's defaults. */

import { DESCRIPTIONS } from "../src/harvest/definition/descriptions.ts";
import { definitionFields, type Field } from "../src/harvest/definition/json-schema.ts";
import { PLATFORM, PLATFORM_LANDING, PLATFORM_WINDOW } from "../src/harvest/spec/layers.ts";
import { accepts, type JsonSchema } from "../src/kernel/json/schema-words.ts";

const DEFAULTS: Readonly<Record<string, unknown>> = { ...PLATFORM, window: PLATFORM_WINDOW, landing: PLATFORM_LANDING };

/** Parts of a definition that have a heading of their own. */
const HEADINGS: readonly [title: string, isPart: (path: string) => boolean][] = [
  [
    "The source",
    (path) =>
      /^(source|name|description|baseUrl|credentials|defaults|endpoints|schedules)$/.test(path) ||
      path.startsWith("credentials{}"),
  ],
  ["An endpoint", (path) => path.startsWith("endpoints{}.")],
  ["A schedule", (path) => path.startsWith("schedules{}.")],
];

export function sourceFields(): string {
  const fields = definitionFields();
  const parts = HEADINGS.map(([title, isPart]) =>
    section(
      title,
      fields.filter(({ path }) => isPart(path)),
    ),
  );
  const others = fields.filter(({ path }) => !HEADINGS.some(([, isPart]) => isPart(path)));
  const sections = [...new Set(others.map(({ path }) => path.split(/[.[]/)[0]!))];
  const layer = sections.map((name) => {
    const own = others.filter(({ path }) => path.split(/[.[]/)[0] === name);
    return own.length === 1 ? undefined : section(`\`${name}\``, own.slice(1), DESCRIPTIONS[name]);
  });
  const alone = others.filter(
    ({ path }) => /^\w+$/.test(path) && !others.some((one) => one.path.startsWith(`${path}.`)),
  );
  return [...parts, section("Fields beside the sections", alone), ...layer.filter((text) => text !== undefined)].join(
    "\n\n",
  );
}

function section(title: string, fields: readonly Field[], text?: string): string {
  const rows = fields.map(({ path, schema, isRequired }) => {
    const name = path.replace("credentials{}", "credentials.NAME").replace(/^\w+\{\}\./, "");
    const cells = [
      `\`${name}\``,
      accepted(schema as unknown as JsonSchema),
      standard(path, schema.default, isRequired),
      DESCRIPTIONS[path],
    ];
    return `| ${cells.join(" | ")} |`;
  });
  const table = ["| field | accepted | default | what it says |", "|---|---|---|---|", ...rows].join("\n");
  return [`### ${title}`, ...(text === undefined ? [] : [text]), table].join("\n\n");
}

/** A map or a list of parts is described by the fields of its parts. */
function accepted(schema: JsonSchema): string {
  const pattern = schema["pattern"];
  if (typeof pattern === "string" && pattern.startsWith("^P")) return "a duration, such as `P1D` or `PT10M`";
  if (pattern === "^\\$") return "a JSONPath";
  if (schema["patternProperties"] !== undefined) return "a map";
  if (schema.type === "object") return "a section";
  if (schema.type === "array" && schema.items?.type === "object") return "a list";
  return accepts(schema).replaceAll("|", "\\|");
}

function standard(path: string, own: unknown, isRequired: boolean): string {
  if (path.startsWith("credentials{}.")) return "one of the two";
  if (isRequired) return "**required**";
  if (path === "expr.allowedFunctions") return "see above";
  const found = own ?? path.split(".").reduce(memberOf, DEFAULTS);
  if (Array.isArray(found)) return found.length === 0 ? "none" : `\`${found.join(", ")}\``;
  return found === undefined || typeof found === "object" ? "" : `\`${JSON.stringify(found).replaceAll('"', "")}\``;
}

function memberOf(object: unknown, name: string): unknown {
  return (object as Record<string, unknown> | undefined)?.[name];
}
