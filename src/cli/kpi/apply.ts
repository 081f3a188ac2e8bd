/** `millrace kpi apply`: makes models, indicators and subscriptions what a file says, after showing what that changes. */
import { readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import { OperatorError } from "../../kernel/errors.ts";
import { type Client, Refusal } from "../common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor, refusalsAsJson } from "../common/client-command.ts";
import type { Command } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { print, printable, remark } from "../common/output.ts";
import { isOfFile, placeOf, type Refused, refusalsOf } from "./check.ts";
import { isConfirmed } from "./confirm.ts";
import { differenceText } from "./difference.ts";
import type { KpiFile } from "./file.ts";
import type { Change } from "./plan.ts";

/** A signing key is told when its callback is new, and never again. */
type Applied = Change & { signingKey?: string };

export const apply: Command = {
  summary: "Create models, indicators and subscriptions from a file, or bring them up to date",
  details: `FILE is YAML or JSON; - stands for standard input. Shows what it changes, and on a terminal asks first. The server
checks all models and indicators before the first is changed, also with --dry-run.

  models:
    MODEL-01:
      name: Orders of a day
      sql: select 'KD1001' as kpi_id, count(*) as value from DW_FACT_ORDER_D where day = $op_time
      dependencies: [{ table: DW_FACT_ORDER_D }]
      kpis: [KD1001]
      grain: day
      publish: true
  indicators:
    KD1001: { type: EXTENDED, name: Orders }
    KD1003: { type: COMPUTED, name: Orders in dozens, expression: KD1001 / 12 }
  subscriptions:
    - { kpiId: KD1001, callbackUrl: "https://example.org/hooks", secret: "\${env.HOOK_SECRET}" }

A model is published unless it says publish: false. What is not in the file is left alone. A field that a model or indicator
leaves out gets its default, only timeoutSeconds stays; one that a subscription leaves out stays as it is. A subscription is known
by its kpiId, callbackUrl and teamName. Its secret is sent when it is new or has another type or name; the server never tells
what it has, so a new value needs --secrets.`,
  args: "FILE",
  flags: [
    { usage: "--dry-run", description: "Only check the file and show what would change." },
    { usage: "--yes", description: "Do not ask." },
    {
      usage: "--secrets",
      description: "Send the secrets of all subscriptions in the file, also of those that are there.",
    },
    { usage: "--json", description: "Print what was changed as JSON." },
    ...CLIENT_FLAGS,
  ],
  environment: CLIENT_ENVIRONMENT,
  examples: ["millrace kpi apply kpi.yaml --dry-run", "millrace kpi apply kpi.yaml --yes"],
  async run(given) {
    const filename = given.text("FILE");
    const text = await contentOf(filename);
    // Loaded here because the reader of YAML takes long, and every other command would wait for it.
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
    const isWanted = !isDry && (!asks || (await isConfirmed("\nApply?", process.stdin, process.stderr)));
    const applied = isWanted ? await refusalsAsJson(given, () => carryOut(client, changes, file)) : changes;
    if (isJson) print(JSON.stringify(asJson(applied, isWanted)));
    else if (isWanted && applied.length > 0) print(`\n${endInWords(applied)}`);
    if (isWanted || isDry) return EXIT.ok;
    remark("\nNothing was changed.");
    return EXIT.failed;
  },
};

async function contentOf(filename: string): Promise<string> {
  try {
    return filename === "-" ? await textOf(process.stdin) : await readFile(filename, "utf8");
  } catch (error) {
    throw new OperatorError(`${filename} cannot be read: ${(error as Error).message}.`, EXIT.usage);
  }
}

async function carryOut(client: Client, changes: readonly Change[], file: KpiFile): Promise<Applied[]> {
  const applied: Applied[] = [];
  for (const change of changes) {
    if (!change.request) continue;
    try {
      const { signingKey } = await client.call<{ signingKey?: string }>(change.request);
      applied.push({ ...change, ...(signingKey === undefined ? {} : { signingKey }) });
    } catch (error) {
      process.stderr.write(signingKeys(applied)); // No later call would tell them.
      throw inFile(error, change, file, `${applied.length} of ${changes.length}`);
    }
  }
  return applied;
}

/** A refusal of what the file says, with its place there. */
function inFile(error: unknown, change: Change, file: KpiFile, done: string): unknown {
  if (!(error instanceof Refusal) || !isOfFile(error)) return error;
  const place = placeOf(error, change, file);
  return error.inOtherWords(
    `${file.complaint(place, error.message)}\n${done} changes were made. Mend the file and apply it again.`,
  );
}

function refusedInFile(refused: readonly Refused[], file: KpiFile): OperatorError {
  const lines = refused.map(({ path, sentence }) => file.complaint(path, sentence));
  return new OperatorError(`${lines.join("\n")}\nNothing was changed. Mend the file and apply it again.`, EXIT.usage);
}

const PARTICIPLES = {
  create: "to create",
  change: "to change",
  publish: "to publish",
  unpublish: "to unpublish",
  unchanged: "unchanged",
} as const satisfies Record<Change["action"], string>;

/** `2 to create, 1 unchanged.` */
function countsInWords(plan: readonly Change[]): string {
  const actions = Object.entries(PARTICIPLES).map(([action, words]) => {
    const count = plan.filter((change) => change.action === action).length;
    return count === 0 ? "" : `${count} ${words}`;
  });
  return `${actions.filter((words) => words !== "").join(", ")}.`;
}

function endInWords(applied: readonly Applied[]): string {
  const count = `Done: ${applied.length} ${applied.length === 1 ? "change" : "changes"}.`;
  return `${count}\n${signingKeys(applied)}`.trimEnd();
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
