/** `millrace lineage search`: finds assets by words or by meaning. */
import { Refusal } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import { clip, printable, table } from "../common/output.ts";
import { type Asset, TENANT_FLAG, tenantOf } from "./api.ts";

interface Match {
  field: string;
  snippet: string;
}

interface Found {
  /** Why the search used another mode. */
  notice: string | null;
  items: (Asset & { isDropped?: boolean; matched: Match[] })[];
}

const SNIPPET_WIDTH = 60;

export const search = serverCommand<Found>({
  summary: "Find assets by words in their names and descriptions",
  details: `Best matches first. Semantic search finds assets with a similar meaning, if the tenant has a model (\`millrace lineage
model\`).`,
  args: "WORD...",
  flags: [
    { usage: "--kind <kind>", description: "Only TABLE, COLUMN, METRIC, SQL, JOB, SCHEMA, CATALOG, TAG ..." },
    { usage: "--mode <mode>", description: "By words (text, the default), by meaning (semantic), or both (hybrid)." },
    { usage: "--dropped", description: "Also dropped assets, by words." },
    { usage: "--limit <number>", description: "The limit (default 20)." },
    TENANT_FLAG,
  ],
  examples: ["millrace lineage search daily orders --kind TABLE", "millrace lineage search 'money back' --mode hybrid"],
  async execute(client, given) {
    const tenant = await tenantOf(client, given);
    try {
      return await client.call<Found>({
        method: "GET",
        path: "api/v1/lineage/search",
        query: {
          tenant,
          q: given.texts("WORD").join(" "),
          kind: given.maybeText("--kind")?.toUpperCase(),
          mode: given.maybeText("--mode")?.toLowerCase(),
          dropped: given.isOn("--dropped") ? true : undefined,
          limit: given.maybeNumber("--limit"),
        },
      });
    } catch (error) {
      throw hasNoModel(error) ? error.withMessage(noModel(tenant)) : error;
    }
  },
  show({ items, notice }) {
    const list =
      items.length === 0
        ? "There are no such assets."
        : table(
            ["ID", "KIND", "NAME", "FOUND IN"],
            items.map(({ id, kind, fullName, isDropped, matched }) => [
              id,
              kind,
              isDropped ? `${fullName} (dropped)` : fullName,
              [...new Set(matched.map(matchInWords))].join("; "),
            ]),
          );
    return notice === null ? list : `${list}\n\n${printable(notice)}`;
  },
});

function hasNoModel(error: unknown): error is Refusal {
  return error instanceof Refusal && (error.body as { code?: unknown } | null)?.code === "SEMANTIC_UNAVAILABLE";
}

const noModel = (tenant: string) =>
  `Tenant ${printable(tenant)} has no model, which semantic search needs. Set one with \
\`millrace lineage model ${printable(tenant)}\`, or search by words, without --mode.`;

function matchInWords({ field, snippet }: Match): string {
  if (field === "name" || field === "fullName") return "name";
  return snippet === "" ? field : `${field}: ${clip(printable(snippet), SNIPPET_WIDTH)}`;
}
