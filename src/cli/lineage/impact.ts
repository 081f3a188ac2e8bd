/** `millrace lineage impact`: the list of what a change of an asset would reach, to work through or to hand on. */
import { OperatorError } from "../../kernel/errors.ts";
import type { Request } from "../common/client.ts";
import { talkingCommand } from "../common/client-command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, table } from "../common/output.ts";
import { type Asset, type CutReason, TENANT_FLAG, tenantOf } from "./api.ts";

interface Impact {
  partial: boolean;
  reason: CutReason | null;
  items: (Asset & { owner: string | null; distance: number; via: string[] })[];
}

const PARTIAL = "This list is only a part: more is reached than is looked at in one go.";
/** The server looks for so long, and then answers with what it has. */
const LOOK_SECONDS = 5;

export const impact = talkingCommand<Impact | { csv: string; partial: boolean }>({
  summary: "List everything that a change of an asset would reach",
  details: `The nearest first, with what lies between. Of a column, the columns and metrics that come from it. With --csv it is a
file for a spreadsheet; if it is only a part, that is said on standard error.`,
  args: "ASSET",
  flags: [{ usage: "--csv", description: "Print it as CSV." }, TENANT_FLAG],
  examples: [
    "millrace lineage impact lake.shop.orders",
    "millrace lineage impact lake.shop.orders.amount --csv | tee impact.csv",
  ],
  async talk(client, given) {
    const isCsv = given.isOn("--csv");
    if (isCsv && given.isOn("--json")) throw new OperatorError("Say --csv or --json, not both.", EXIT.usage);
    const request: Request = {
      method: "GET",
      path: "api/v1/lineage/impact",
      query: { tenant: await tenantOf(client, given), node: given.text("ASSET"), format: isCsv ? "csv" : "json" },
      waitSeconds: LOOK_SECONDS,
    };
    if (!isCsv) return client.call<Impact>(request);
    const { text, headers } = await client.download(request, "text/csv");
    return { csv: text, partial: headers.get("x-partial") === "true" };
  },
  show(reply, given) {
    if ("csv" in reply) {
      if (reply.partial) process.stderr.write(`${PARTIAL}\n`);
      return reply.csv.replace(/\n$/, ""); // The last line's end is printed with it.
    }
    const name = printable(given.text("ASSET"));
    if (reply.items.length === 0) return `A change of ${name} would reach nothing that is known.`;
    const rows = reply.items.map(({ distance, kind, fullName, owner, via }) => [
      distance,
      kind,
      fullName,
      owner ?? undefined,
      via.join(" > "),
    ]);
    const list = table(["STEPS", "KIND", "NAME", "OWNER", "OVER"], rows);
    return reply.partial ? `${list}\n\n${PARTIAL}` : list;
  },
});
