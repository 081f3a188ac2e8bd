/** `millrace arrive`: announces that a table has arrived, as the last step of its load. */
import { inOneLine } from "../chain/run-text.ts";
import { Refusal, type Request } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import type { Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { type Cell, printable, table } from "../common/output.ts";
import { type Arrival, remarksOf, type Triggered } from "./api.ts";

/** The maximum of `arrivals.waitSeconds`. */
const WAIT_SECONDS_MAX = 300;
const ASYNC = "respond-async";

export const arrive = serverCommand<Arrival>({
  summary: "Announce that a table has arrived, and run the models that wait for it",
  details: `Waits for the triggered models, up to the server's limit (arrivals.waitSeconds, 30 s by default); models that take longer
continue and are shown as RUNNING. Announcing the same table again means that it was loaded again, and its models run again; with
--key, repeated calls are one arrival.

An opTime that fits none of the models that depend on the table, such as 2025-12-19 for one whose grain is day, is refused, and nothing
is recorded; --force announces it all the same. The exit code is 1 if a model that was triggered has failed.`,
  args: "TABLE OPTIME",
  flags: [
    { usage: "--key <text>", description: "Repeated calls with the same key are one arrival." },
    { usage: "--no-wait", description: "Do not wait for the models." },
    { usage: "--force", description: "Announce it even if its opTime fits no model that depends on the table." },
  ],
  examples: [
    "millrace arrive DW_FACT_ORDER_D 20251219",
    "millrace arrive DW_FACT_ORDER_D 20251219 --key load-4711 --no-wait",
  ],
  async execute(client, given) {
    try {
      return await client.call(requestOf(given));
    } catch (error) {
      throw error instanceof Refusal ? error.withMessage(error.message.replace(...FORCE_HINT)) : error;
    }
  },
  show(arrival, given) {
    const what = `${printable(given.text("TABLE"))} has arrived for ${printable(given.text("OPTIME"))}.`;
    const hint = arrival.hint === undefined ? "" : ` ${printable(arrival.hint)}`;
    if (arrival.status === "IGNORED") return `${what}${hint || " No model depends on it."}`;
    if (arrival.message !== undefined) return `${what} ${printable(arrival.message)}${hint}`;
    const waits = arrival.waitingModels.length > 0;
    const because = hint === "" ? "" : `\n\n${hint.trim()}`;
    const advice = waits ? "\n\n`millrace kpi why MODEL OPTIME` shows what a model waits for." : "";
    return `${what}\n\n${table(["MODEL", "OPTIME", "STATUS", "COMPUTED", "STORED", "MESSAGE"], rowsOf(arrival))}${because}${advice}`;
  },
  exitCode: ({ triggeredModels }) => exitCodeOf(triggeredModels),
});

/** What the server calls the flag. */
const STRICT = "handling=strict";
const FORCE_HINT = [
  `Without \`Prefer: ${STRICT}\` it is recorded all the same`,
  "With `--force` it is announced all the same",
] as const;

function requestOf(given: Given): Request {
  const key = given.maybeText("--key");
  return {
    method: "POST",
    path: "api/open/kpi/srcTableComplete",
    body: { srcTableName: given.text("TABLE"), opTime: given.text("OPTIME") },
    ...waiting(given, {
      ...(key === undefined ? {} : { "idempotency-key": key }),
      ...(given.isOn("--force") ? {} : { prefer: STRICT }),
    }),
  };
}

/** The headers and time limit for waiting on models. */
export function waiting(
  given: Given,
  headers: NonNullable<Request["headers"]> = {},
): Pick<Request, "headers" | "waitSeconds"> {
  if (given.isOn("--no-wait")) {
    const { prefer } = headers;
    return { headers: { ...headers, prefer: prefer === undefined ? ASYNC : `${prefer}, ${ASYNC}` } };
  }
  return { headers, waitSeconds: WAIT_SECONDS_MAX };
}

export function exitCodeOf(triggered: readonly Triggered[]): number {
  return triggered.some(({ status }) => status === "FAILED") ? EXIT.failed : EXIT.ok;
}

function rowsOf({ triggeredModels, waitingModels, skippedModels }: Arrival): Cell[][] {
  return [
    ...triggeredModels.map((one) => [
      one.modelId,
      one.opTime,
      one.status,
      one.computeCount,
      one.storageCount,
      one.followUp ? "it is running, and runs again after that" : inOneLine(remarksOf(one)),
    ]),
    ...waitingModels.map((modelId) => [modelId, "", "WAITING"]),
    ...skippedModels.map((modelId) => [modelId, "", "SKIPPED"]),
  ];
}
