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

const DRY_RUN = { usage: "--dry-run", description: "Only show what would happen." } as const;

const retry = clientCommand<{ opTimes: string[] }>({
  summary: "Run a model again where its newest run has failed",
  details: "For one opTime, or for all that have failed.",
  args: "MODEL [OPTIME]",
  flags: [DRY_RUN],
  examples: ["millrace kpi retry MODEL-01", "millrace kpi retry MODEL-01 20251219"],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/kpi/models/${given.text("MODEL")}:retry`,
    query: { dryRun: given.isOn("--dry-run") ? true : undefined },
    body: { opTime: given.maybeText("OPTIME") },
  }),
  show({ opTimes }, given) {
    if (opTimes.length === 0) return "None of its newest runs has failed.";
    const verb = given.isOn("--dry-run") ? "would run" : opTimes.length === 1 ? "is queued" : "are queued";
    return `${opTimes.map(printable).join("\n")}\n\n${counted(opTimes.length, "opTime")} ${verb}.`;
  },
});

const stop = clientCommand<{ stopped: { opTime: string; was: string }[] }>({
  summary: "Stop the runs of a model, also those that wait in the queue",
  details: "For one opTime, or for all, such as those of a backfill. Nothing is stored of a stopped run.",
  args: "MODEL [OPTIME]",
  flags: [{ usage: "--reason <text>", description: "Why; it is in the log of the runs." }, DRY_RUN],
  examples: ["millrace kpi stop MODEL-01", "millrace kpi stop MODEL-01 20251219 --reason 'wrong data'"],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/kpi/models/${given.text("MODEL")}:stop`,
    query: { dryRun: given.isOn("--dry-run") ? true : undefined },
    body: { opTime: given.maybeText("OPTIME"), reason: given.maybeText("--reason") },
  }),
  show({ stopped }, given) {
    if (stopped.length === 0) return "None of its runs is under way or ready.";
    const verb = given.isOn("--dry-run") ? "would be stopped" : stopped.length === 1 ? "is stopped" : "are stopped";
    const rows = stopped.map(({ opTime, was }) => [opTime, was]);
    return `${table(["OPTIME", "WAS"], rows)}\n\n${counted(stopped.length, "run")} ${verb}.`;
  },
});

interface Retraction {
  judgedAgain: { modelId: string; opTime: string }[];
  usedBy: { modelId: string; opTime: string }[];
}

const retract = clientCommand<Retraction>({
  summary: "Take an arrival back, such as one that was announced by mistake",
  details: `The table counts as missing for the opTime until it arrives again, and models that are ready or wait because of it are judged
again. Values that were computed from it stay; the models that have used it are listed.`,
  args: "TABLE OPTIME",
  flags: [DRY_RUN],
  examples: ["millrace kpi retract DW_ORDER 20251219 --dry-run"],
  request: (given) => ({
    method: "DELETE",
    path: "api/v1/kpi/arrivals",
    query: {
      table: given.text("TABLE"),
      opTime: given.text("OPTIME"),
      dryRun: given.isOn("--dry-run") ? true : undefined,
    },
  }),
  show({ judgedAgain, usedBy }, given) {
    const verb = given.isOn("--dry-run") ? "would be retracted" : "is retracted";
    const named = (all: Retraction["usedBy"]) => all.map((one) => printable(`${one.modelId} ${one.opTime}`)).join(", ");
    const lines = [
      `${printable(given.text("TABLE"))} ${printable(given.text("OPTIME"))} ${verb}.`,
      ...(judgedAgain.length > 0 ? [`Judged again: ${named(judgedAgain)}.`] : []),
      ...(usedBy.length > 0 ? [`Have used it, and keep their values: ${named(usedBy)}.`] : []),
    ];
    return lines.join("\n");
  },
});

export const control = { run, publish, unpublish, backfill, retry, stop, retract };
