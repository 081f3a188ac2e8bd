/** `millrace harvest run` and `plan`: make a plan and watch it, or only show what it would be. */
import { OperatorError } from "../../kernel/errors.ts";
import { type Client } from "../common/client.ts";
import {
  CLIENT_ENVIRONMENT,
  CLIENT_FLAGS,
  clientFor,
  refusalsAsJson,
  serverCommand,
} from "../common/client-command.ts";
import type { Command, Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { print, printable } from "../common/output.ts";
import { HARVEST, type PlanMade } from "./api.ts";
import { draftText } from "./draft-text.ts";
import { PARAM_FLAG, paramsOf } from "./params.ts";
import { WATCH_DETAILS, watchPlan } from "./watch.ts";

const PLAN_FLAGS: readonly Flag[] = [
  {
    usage: "--endpoint <name>",
    description: "Which endpoint of the source (default: the one that its definition names).",
  },
  {
    usage: "--operation <name>",
    description:
      "HARVEST (the default) takes what is new; BACKFILL goes back from where HARVEST began, the newest window first; UPDATE asks for known records again.",
  },
  { usage: "--id <id>", description: "For UPDATE: the id of a record. May be given several times.", repeatable: true },
  {
    usage: "--quarantined",
    description: "For UPDATE: the records that are quarantined and have not come since, at most 10,000.",
  },
  {
    usage: "--from <time>",
    description: "The start of the window: a date (the start of that day of the source) or 2026-08-20T06:00:00Z.",
  },
  { usage: "--to <time>", description: "The end of the window, which is not part of it." },
  { usage: "--last <duration>", description: "The last closed days or hours instead, such as P3D or PT6H." },
  PARAM_FLAG,
  {
    usage: "--priority <number>",
    description: "Plans with a smaller number go first (default 100; 200 for UPDATE, 300 for BACKFILL).",
  },
];
const WINDOW_DETAILS = `Without a window, harvests what is new: from the watermark to the last instant that can be closed. A backfill goes back to the earliest record that the
definition declares (\`window.earliest\`), and makes way whenever a harvest of its source runs.`;

const NOTHING_DETAILS = `If there is nothing to plan, because all that can be closed is harvested or no window is closed yet, no plan is made and the exit
code is ${EXIT.wrongState}; the message says when there will be something.`;

const run: Command = {
  summary: "Harvest a window of a source, and wait until it has landed",
  details: `${WINDOW_DETAILS}

${WATCH_DETAILS}

${NOTHING_DETAILS}`,
  args: "SOURCE",
  flags: [
    ...PLAN_FLAGS,
    { usage: "--dry-run", description: "Only show the slices, as `millrace harvest plan` does." },
    { usage: "--no-wait", description: "Print the id of the plan, and do not wait for its end." },
    { usage: "--json", description: "Print events as lines of JSON: plan, progress, end." },
    ...CLIENT_FLAGS,
  ],
  environment: CLIENT_ENVIRONMENT,
  examples: [
    "millrace harvest run crossref --last P3D",
    "millrace harvest run crossref --from 2026-08-01 --to 2026-08-08 --param mailto=me@example.org --priority 300",
    "millrace harvest run pubmed --operation UPDATE --id 38785209",
    "millrace harvest run pubmed --operation UPDATE --quarantined",
    "millrace harvest run crossref --operation BACKFILL --from 2025-01-01 --to 2026-01-01",
    "millrace harvest run pubmed --json | jq -c 'select(.event == \"progress\") | .data.reconciliation'",
  ],
  async run(given) {
    if (given.isOn("--dry-run")) return plan.run(given);
    const json = given.isOn("--json");
    const client = clientFor(given);
    const made = await refusalsAsJson(given, () => makePlan(client, given, { dryRun: false }));
    const planId = made.planId ?? "";
    const isWatched = !given.isOn("--no-wait");
    // Watched, the reply has the form of an event.
    if (json) print(JSON.stringify(isWatched ? { event: "plan", data: made } : made));
    else {
      for (const note of made.notes) process.stderr.write(`${printable(note)}\n`);
      if (!isWatched) print(printable(planId));
    }
    return isWatched ? watchPlan(client, planId, { json, made: { params: given.texts("--param") } }) : EXIT.ok;
  },
};

const plan = serverCommand<PlanMade>({
  summary: "Show the slices that a run would have, and change nothing",
  details: `${WINDOW_DETAILS}

The columns in braces are what templates of requests are given for each slice: \${window.until} is part of the slice, \${window.to} is
not. EXPECTED is what earlier slices of the window, or of windows near it, had. Slices that are expected to be too large follow with how they
will be divided; nothing is asked of the source.

${NOTHING_DETAILS}`,
  args: "SOURCE",
  flags: PLAN_FLAGS,
  examples: ["millrace harvest plan crossref --last P3D"],
  execute: (client, given) => makePlan(client, given, { dryRun: true }),
  show: draftText,
});

export const planning = { run, plan };

function makePlan(client: Client, given: Given, query: { dryRun: boolean }): Promise<PlanMade> {
  return client.call<PlanMade>({
    method: "POST",
    path: `${HARVEST}/plans`,
    query,
    body: {
      source: given.text("SOURCE"),
      endpoint: given.maybeText("--endpoint"),
      operation: given.maybeText("--operation")?.toUpperCase(),
      window: windowOf(given),
      params: paramsOf(given),
      ids: idsOf(given.texts("--id")),
      quarantined: given.isOn("--quarantined") || undefined,
      priority: given.maybeNumber("--priority"),
    },
  });
}

function windowOf(given: Given): object | undefined {
  const from = given.maybeText("--from");
  const to = given.maybeText("--to");
  const last = given.maybeText("--last");
  if ((from === undefined) !== (to === undefined)) {
    const [one, other] = from === undefined ? ["--to", "--from"] : ["--from", "--to"];
    throw new OperatorError(`${one} needs ${other}. For the last days there is --last P3D.`, EXIT.usage);
  }
  if (last === undefined) return from === undefined ? undefined : { from, to };
  if (from === undefined) return { last };
  throw new OperatorError("Give either --last, or --from and --to.", EXIT.usage);
}

function idsOf(ids: readonly string[]): readonly string[] | undefined {
  return ids.length === 0 ? undefined : ids;
}
