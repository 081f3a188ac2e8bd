/** `millrace harvest status`: recent plans, or one plan as it is now or live. */

import type { Client } from "../common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor, refusalsAsJson } from "../common/client-command.ts";
import type { Command, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { hasColours, print, table, toSeconds } from "../common/output.ts";
import { exitCodeFor, fetchOpenSlices, fetchPlan, HARVEST, type OpenSlice, type Plan, type PlanDetail } from "./api.ts";
import { frame, tookText } from "./frame.ts";
import { LIST_FLAGS, type Listed, listedText, listQuery, ofSource } from "./listed.ts";
import { openSliceLines, outcomeLines, shownWindow } from "./plan-text.ts";
import { createProgressMeter } from "./progress.ts";
import { WATCH_DETAILS, watchPlan } from "./watch.ts";

export const status: Command = {
  summary: "List recent plans, or show one and with --follow watch it",
  details: `Without --follow, the first 20 open slices of a plan are listed with their ids, for \`millrace harvest why\` and \`cancel --slice\`, and
its gaps with theirs.

${WATCH_DETAILS}

Without --follow the exit code is 0 while the plan goes on; otherwise it is that of --follow.`,
  args: "[PLAN]",
  flags: [
    { usage: "--follow", description: "Watch the plan until it is over, and exit with its result." },
    { usage: "--source <name>", description: "Plans of this source." },
    {
      usage: "--status <status>",
      description: "Plans that are SLICING, READY, PARTIAL, COMPLETE, FAILED or CANCELLED.",
    },
    ...LIST_FLAGS,
    { usage: "--json", description: "Print the server's reply unchanged; with --follow events as lines of JSON." },
    ...CLIENT_FLAGS,
  ],
  environment: CLIENT_ENVIRONMENT,
  examples: [
    "millrace harvest status --source crossref",
    "millrace harvest status 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b --follow",
  ],
  async run(given) {
    const client = clientFor(given);
    const json = given.isOn("--json");
    const planId = given.maybeText("PLAN");
    if (planId === undefined) return listPlans(client, given);
    if (given.isOn("--follow")) return watchPlan(client, planId, { json });
    const plan = await refusalsAsJson(given, () => fetchPlan(client, planId));
    print(json ? JSON.stringify(plan) : planText(plan, await fetchOpenSlices(client, plan)));
    return exitCodeFor(plan);
  },
};

async function listPlans(client: Client, given: Given): Promise<number> {
  const source = given.maybeText("--source");
  const query = { source, status: given.maybeText("--status")?.toUpperCase(), ...listQuery(given) };
  const plans = await refusalsAsJson(given, async () =>
    ofSource(client, source, await client.call<Listed<Plan>>({ method: "GET", path: `${HARVEST}/plans`, query })),
  );
  print(given.isOn("--json") ? JSON.stringify(plans) : plansText(plans, Date.now()));
  return EXIT.ok;
}

export function plansText(plans: Listed<Plan>, now: number): string {
  return listedText(plans, "plan", (items) =>
    table(
      ["PLAN", "SOURCE", "ENDPOINT", "OPERATION", "STATUS", "WINDOW", "CREATED", "DURATION"],
      items.map((plan) => [
        plan.planId,
        plan.source,
        plan.namespace,
        plan.operation,
        plan.paused ? `${plan.status}, paused` : plan.status,
        shownWindow(plan.window),
        toSeconds(plan.createdAt),
        tookText(plan, now),
      ]),
    ),
  );
}

function planText(plan: PlanDetail, slices: Listed<OpenSlice>): string {
  const now = Date.now();
  const lines = frame({
    plan,
    progress: createProgressMeter()(plan, now),
    now,
    width: process.stdout.columns || Number.POSITIVE_INFINITY,
    colour: hasColours(),
  });
  return [...lines, ...outcomeLines(plan, undefined), ...openSliceLines(plan, slices)].join("\n");
}
