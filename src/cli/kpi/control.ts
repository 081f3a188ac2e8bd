/** The commands of `millrace kpi` that run, publish and backfill models. */

import { counted } from "../../kernel/text/sentences.ts";
import { inOneLine } from "../chain/run-text.ts";
import { pathTo } from "../common/client.ts";
import { clientCommand } from "../common/client-command.ts";
import type { Command } from "../common/command.ts";
import { printable, table } from "../common/output.ts";
import { type Model, remarksOf, type Triggered } from "./api.ts";
import { exitCodeOf, waiting } from "./arrive.ts";

const run = clientCommand<Triggered>({
  summary: "Run a model for an opTime, even if nothing is new",
  details: `Waits for its end like \`millrace arrive\`. A model whose tables have not all arrived is refused without --force. The
exit code is 1 if the run failed.`,
  args: "MODEL OPTIME",
  flags: [
    { usage: "--force", description: "Run even if tables are missing." },
    { usage: "--no-wait", description: "Do not wait for its end." },
  ],
  examples: ["millrace kpi run MODEL-01 20251219", "millrace kpi run MODEL-01 20251219 --force --no-wait"],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/kpi/models/${given.text("MODEL")}:run`,
    body: { opTime: given.text("OPTIME"), force: given.isOn("--force") },
    ...waiting(given),
  }),
  show: (triggered) => `${printable(triggered.modelId)} for ${printable(triggered.opTime)}: ${endInWords(triggered)}`,
  exitCode: (triggered) => exitCodeOf([triggered]),
});

function endInWords({ status, computeCount, storageCount, message, warnings }: Triggered): string {
  switch (status) {
    case "SUCCESS":
      return `SUCCESS, ${computeCount} computed, ${storageCount} stored. ${inOneLine(remarksOf({ warnings: warnings ?? [] })) ?? ""}`.trimEnd();
    case "FAILED":
      return `FAILED: ${inOneLine(message ?? null)}`;
    case "RUNNING":
    case "SKIPPED":
      return `${status}.`;
  }
}

const publish = publication("publish", {
  summary: "Publish a model, so that arrivals run it",
  details: "Earlier arrivals do not run it; use `millrace kpi backfill` for them.",
});

const unpublish = publication("unpublish", {
  summary: "Unpublish a model, so that no further run starts",
});

function publication(action: "publish" | "unpublish", words: Pick<Command, "summary" | "details">): Command {
  return clientCommand<Model>({
    ...words,
    args: "MODEL",
    flags: [],
    examples: [`millrace kpi ${action} MODEL-01`],
    request: (given) => ({ method: "POST", path: `${pathTo`api/v1/kpi/models/${given.text("MODEL")}`}:${action}` }),
    show: ({ modelId, state }) => `${printable(modelId)} is ${state === 1 ? "published" : "not published"}.`,
  });
}

interface Backfill {
  runs: number;
  items: { opTime: string; runs: boolean; missing: string[] }[];
}

const backfill = clientCommand<Backfill>({
  summary: "Run a model for a range of opTimes whose tables have arrived",
  details: `FROM and TO are inclusive. For a model with a grain the range has all hours, days or months; without, the opTimes that
have arrived, in text order. The runs wait in a queue for workers; see \`millrace kpi runs\`.`,
  args: "MODEL FROM TO",
  flags: [{ usage: "--dry-run", description: "Only show what would run." }],
  examples: ["millrace kpi backfill MODEL-01 20251201 20251231 --dry-run"],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/kpi/models/${given.text("MODEL")}:backfill`,
    body: { from: given.text("FROM"), to: given.text("TO"), dryRun: given.isOn("--dry-run") },
  }),
  show({ runs, items }, given) {
    if (items.length === 0) return "There are no opTimes in this range.";
    const verb = given.isOn("--dry-run") ? "would run" : runs === 1 ? "is queued" : "are queued";
    const rows = items.map((item) => [item.opTime, item.runs ? "yes" : "no", item.missing.join(", ")]);
    return `${table(["OPTIME", "RUNS", "MISSING"], rows)}\n\n${runs} of ${counted(items.length, "opTime")} ${verb}.`;
  },
});

export const control = { run, publish, unpublish, backfill };
