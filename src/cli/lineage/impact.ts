/** `millrace lineage impact`: the assets that a change of one asset affects. */
import { OperatorError } from "../../kernel/errors.ts";
import type { Request } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, table } from "../common/output.ts";
import { type Asset, type CutReason, TENANT_FLAG, tenantOf } from "./api.ts";

interface Impact {
  partial: boolean;
  reason: CutReason | null;
  items: (Asset & { owner: string | null; distance: number; via: string[] })[];
}

const PARTIAL = "This list is incomplete: more assets are affected than one request returns.";
/** After this time the server returns what it has found. */
const SEARCH_SECONDS = 5;

export const impact = serverCommand<Impact | { csv: string; partial: boolean }>({
  summary: "List everything that a change of an asset affects",
  details: `The nearest first, with the path. For a column: the columns and metrics derived from it. With --csv prints CSV; if the
list is incomplete, a note is printed on standard error.`,
  args: "ASSET",
  flags: [{ usage: "--csv", description: "Print it as CSV." }, TENANT_FLAG],
  examples: [
    "millrace lineage impact lake.shop.orders",
    "millrace lineage impact lake.shop.orders.amount --csv | tee impact.csv",
  ],
  async execute(client, given) {
    const isCsv = given.isOn("--csv");
    if (isCsv && given.isOn("--json")) throw new OperatorError("Use --csv or --json, not both.", EXIT.usage);
    const request: Request = {
      method: "GET",
      path: "api/v1/lineage/impact",
      query: { tenant: await tenantOf(client, given), node: given.text("ASSET"), format: isCsv ? "csv" : "json" },
      waitSeconds: SEARCH_SECONDS,
    };
    if (!isCsv) return client.call<Impact>(request);
    const { text, headers } = await client.download(request, "text/csv");
    return { csv: text, partial: headers.get("x-partial") === "true" };
  },
  show(reply, given) {
    if ("csv" in reply) {
      if (reply.partial) process.stderr.write(`${PARTIAL}\n`);
      return reply.csv.replace(/\n$/, ""); // `print` adds the last line end.
    }
    const name = printable(given.text("ASSET"));
    if (reply.items.length === 0) return `A change to ${name} affects no known asset.`;
    const rows = reply.items.map(({ distance, kind, fullName, owner, via }) => [
      distance,
      kind,
      fullName,
      owner ?? undefined,
      via.join(" > "),
    ]);
    const list = table(["STEPS", "KIND", "NAME", "OWNER", "VIA"], rows);
    return reply.partial ? `${list}\n\n${PARTIAL}` : list;
  },
});
