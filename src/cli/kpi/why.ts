/** `millrace kpi why`: why a model has or has not run for an opTime, and what would make it run. */
import { pathTo } from "../common/client.ts";
import { clientCommand } from "../common/client-command.ts";
import { indent, sections } from "../common/help.ts";
import { paint, printable, table, toSeconds } from "../common/output.ts";
import type { Task } from "./api.ts";
import { runTable } from "./lists.ts";

interface Explanation {
  modelId: string;
  opTime: string;
  verdict: string;
  tables: TableSeen[];
  runs: Task[];
  wouldRun: string[];
  computed: { kpiId: string; missing: string[] }[];
}

interface TableSeen {
  table: string;
  opTime: string;
  optional: boolean;
  missing: boolean;
  arrivedAt: string | null;
  consumedBy: { taskId: string; generation: number } | null;
}

export const why = clientCommand<Explanation>({
  summary: "Explain why a model has or has not run for an opTime",
  details: "Shows which of its tables have arrived, which run has used them, and what would make it run.",
  args: "MODEL OPTIME",
  flags: [],
  examples: ["millrace kpi why MODEL-01 20251219"],
  request: (given) => ({
    method: "GET",
    path: pathTo`api/v1/kpi/models/${given.text("MODEL")}/why`,
    query: { opTime: given.text("OPTIME") },
  }),
  show(explanation) {
    const { modelId, opTime, verdict, tables, runs, wouldRun, computed } = explanation;
    return sections([
      ["", `${paint("bold", `${printable(modelId)} for ${printable(opTime)}:`)} ${inLines(verdict)}`],
      [
        "",
        table(
          ["TABLE", "OPTIME", "ARRIVED", "USED BY"],
          tables.map((one) => tableRow(one, runs)),
        ),
      ],
      // Empty columns are omitted, and these have the same value in every row.
      ["Runs", runs.length === 0 ? "" : runTable(runs.map((run) => ({ ...run, modelId: "", opTime: "" })))],
      ["What would make it run", indent(wouldRun.map((one) => `- ${asCommand(printable(one), explanation)}`))],
      [
        "Computed indicators without a value",
        indent(computed.map(({ kpiId, missing }) => `- ${printable(`${kpiId}: ${missing.join(" ")}`)}`)),
      ],
    ]);
  },
});

function tableRow(
  { table: name, opTime, optional, missing, arrivedAt, consumedBy }: TableSeen,
  runs: readonly Task[],
): string[] {
  const arrived = missing ? `missing${optional ? ", but optional" : ""}` : (toSeconds(arrivedAt) ?? "");
  const hasFailed = runs.some(({ id, status }) => id === consumedBy?.taskId && status === "FAILED");
  const usedBy = consumedBy ? `generation ${consumedBy.generation}${hasFailed ? ", which failed" : ""}` : "";
  return [name, opTime, arrived, usedBy];
}

/** The message of a failed run may have several lines. */
function inLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** Replaces API calls in the server's text by commands. */
function asCommand(text: string, { modelId, opTime }: Explanation): string {
  const path = printable(`/api/v1/kpi/models/${modelId}`);
  const command = (name: string) => printable(`millrace kpi ${name} ${modelId} ${opTime}`);
  return text
    .replace(`POST ${path}:run with \`force: true\``, `\`${command("run")} --force\``)
    .replace(`POST ${path}:run`, `\`${command("run")}\``)
    .replace(`POST ${path}:retry`, `\`${command("retry")}\``)
    .replace(`PUT ${path}`, "`millrace kpi apply`");
}
