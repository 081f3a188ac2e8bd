/** `millrace kpi apply`: creates or updates models, indicators and subscriptions from a file, after showing the changes. */

import { OperatorError } from "../../kernel/errors.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { type Client, Refusal } from "../common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor, refusalsAsJson } from "../common/client-command.ts";
import type { Command } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { readInputFile } from "../common/input-file.ts";
import { print, printable, printNote } from "../common/output.ts";
import { isFileError, placeOf, type Refused, refusalsOf } from "./check.ts";
import { isConfirmed } from "./confirm.ts";
import { differenceText } from "./difference.ts";
import type { KpiFile } from "./file.ts";
import type { Change } from "./plan.ts";

/** A signing key is returned once, for a new callback. */
type Applied = Change & { signingKey?: string };

export const apply: Command = {
  summary: "Create or update models, indicators and subscriptions from a file",
  details: `FILE is YAML or JSON; - is standard input. Shows the changes, and asks for confirmation on a terminal. The server
checks all models and indicators before the first is changed, also with --dry-run.

  models:
    MODEL-01:
      name: Orders of a day
      sql: select 'KD1001' as kpi_id, count(*) as value from DW_FACT_ORDER_D where day = $op_time
      dependencies: [{ table: DW_FACT_ORDER_D }]
      kpis: [KD1001]
      grain: day
      retry: { maxAttempts: 3, backoffMs: 60000 }
      publish: true
  indicators:
    KD1001: { type: EXTENDED, name: Orders }
    KD1003: { type: COMPUTED, name: Orders in dozens, expression: KD1001 / 12 }
  subscriptions:
    - { kpiId: KD1001, callbackUrl: "https://example.org/hooks", secret: "\${env.HOOK_SECRET}" }

A model is published unless it says publish: false. What is not in the file is not changed. A field that is missing in a model or
indicator gets its default, except timeoutSeconds, which is kept; one that is missing in a subscription is kept. A subscription is
identified by its kpiId, callbackUrl and teamName. Its secret is sent if it is new or has another type or name; the server never
returns it, so a new value needs --secrets.`,
  args: "FILE",
  flags: [
    { usage: "--dry-run", description: "Only check the file and show the changes." },
    { usage: "--yes", description: "Do not ask for confirmation." },
    {
      usage: "--secrets",
      description: "Send the secrets of all subscriptions in the file, also of existing ones.",
    },
    { usage: "--json", description: "Print the changes as JSON." },
    ...CLIENT_FLAGS,
  ],
  environment: CLIENT_ENVIRONMENT,
  examples: ["millrace kpi apply kpi.yaml --dry-run", "millrace kpi apply kpi.yaml --yes"],
  async run(given) {
    const filename = given.text("FILE");
    const text = await readInputFile(filename);
    // Imported here, because the YAML library is slow to load and other commands do not need it.
    const [{ parseKpiFile }, { planOf }] = await Promise.all([import("./file.ts"), import("./plan.ts")]);
    const file = parseKpiFile(filename === "-" ? "standard input" : filename, text, process.env);
    const client = clientFor(given);
    const plan = await refusalsAsJson(given, () => planOf(client, file, { secrets: given.isOn("--secrets") }));
    const changes = plan.filter(({ action }) => action !== "unchanged");

    const isDry = given.isOn("--dry-run");
    const isJson = given.isOn("--json");
    const refused = await refusalsAsJson(given, () => refusalsOf(client, changes, file));
    if (refused.length > 0) {
      if (isJson)
        print(JSON.stringify({ applied: false, refusals: refused.map(({ path, body }) => ({ path, ...body })) }));
      throw refusedInFile(refused, file);
    }
    const asks = changes.length > 0 && !isDry && !given.isOn("--yes") && process.stdin.isTTY && process.stderr.isTTY;
    const difference = `${differenceText(plan)}\n\n${countsInWords(plan)}`;
    if (!isJson) print(difference);
    else if (asks) process.stderr.write(`${difference}\n`);
    const isApplying = !isDry && (!asks || (await isConfirmed("\nApply?", process.stdin, process.stderr)));
    const applied = isApplying ? await refusalsAsJson(given, () => applyChanges(client, changes, file)) : changes;
    if (isJson) print(JSON.stringify(asJson(applied, isApplying)));
    else if (isApplying && applied.length > 0) print(`\n${endInWords(applied)}`);
    if (isApplying || isDry) return EXIT.ok;
    printNote("\nNothing was changed.");
    return EXIT.failed;
  },
};

async function applyChanges(client: Client, changes: readonly Change[], file: KpiFile): Promise<Applied[]> {
  const applied: Applied[] = [];
  for (const change of changes) {
    if (!change.request) continue;
    try {
      const { signingKey } = await client.call<{ signingKey?: string }>(change.request);
      applied.push({ ...change, ...(signingKey === undefined ? {} : { signingKey }) });
    } catch (error) {
      process.stderr.write(signingKeys(applied)); // No later call returns them.
      throw inFile(error, change, file, `${applied.length} of ${counted(changes.length, "change")}`);
    }
  }
  return applied;
}

/** Adds the place in the file to a refusal. */
function inFile(error: unknown, change: Change, file: KpiFile, done: string): unknown {
  if (!(error instanceof Refusal) || !isFileError(error)) return error;
  const place = placeOf(error, change, file);
  return error.withMessage(`${file.complaint(place, error.message)}\n${done} made. Fix the file and apply it again.`);
}

function refusedInFile(refused: readonly Refused[], file: KpiFile): OperatorError {
  const lines = refused.map(({ path, sentence }) => file.complaint(path, sentence));
  return new OperatorError(`${lines.join("\n")}\nNothing was changed. Fix the file and apply it again.`, EXIT.usage);
}

const ACTION_TEXTS = {
  create: "to create",
  change: "to change",
  publish: "to publish",
  unpublish: "to unpublish",
  unchanged: "unchanged",
} as const satisfies Record<Change["action"], string>;

/** `2 to create, 1 unchanged.` */
function countsInWords(plan: readonly Change[]): string {
  const actions = Object.entries(ACTION_TEXTS).map(([action, words]) => {
    const count = plan.filter((change) => change.action === action).length;
    return count === 0 ? "" : `${count} ${words}`;
  });
  return `${actions.filter((words) => words !== "").join(", ")}.`;
}

function endInWords(applied: readonly Applied[]): string {
  return `Done: ${counted(applied.length, "change")}.\n${signingKeys(applied)}`.trimEnd();
}

function signingKeys(applied: readonly Applied[]): string {
  const lines = applied.map(({ name, signingKey }) =>
    signingKey === undefined ? "" : `Signing key of ${printable(name)}, shown only this once: ${signingKey}\n`,
  );
  return lines.join("");
}

function asJson(changes: readonly Applied[], isApplied: boolean) {
  return {
    applied: isApplied,
    changes: changes.map(({ action, kind, name, fields, signingKey }) => ({ action, kind, name, fields, signingKey })),
  };
}
