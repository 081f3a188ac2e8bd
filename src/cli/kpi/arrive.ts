/** `millrace arrive`: announces that a table has arrived, as the last step of its load. */
import { inOneLine } from "../chain/run-text.ts";
import type { Request } from "../common/client.ts";
import { clientCommand } from "../common/client-command.ts";
import type { Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { type Cell, printable, table } from "../common/output.ts";
import { type Arrival, remarksOf, type Triggered } from "./api.ts";

/** The maximum of `arrivals.waitSeconds`. */
const WAIT_SECONDS_MAX = 300;

export const arrive = clientCommand<Arrival>({
  summary: "Announce that a table has arrived, and run the models that wait for it",
  details: `Waits for the triggered models, up to the server's limit (arrivals.waitSeconds, 30 s by default); models that take longer
continue and are shown as RUNNING. Announcing the same table again means that it was loaded again, and its models run again; with
--key, repeated calls are one arrival.

The exit code is 1 if a model that was triggered has failed.`,
  args: "TABLE OPTIME",
  flags: [
    { usage: "--key <text>", description: "Repeated calls with the same key are one arrival." },
    { usage: "--no-wait", description: "Do not wait for the models." },
  ],
  examples: [
    "millrace arrive DW_FACT_ORDER_D 20251219",
    "millrace arrive DW_FACT_ORDER_D 20251219 --key load-4711 --no-wait",
  ],
  request(given) {
    const key = given.maybeText("--key");
    return {
      method: "POST",
      path: "api/open/kpi/srcTableComplete",
      body: { srcTableName: given.text("TABLE"), opTime: given.text("OPTIME") },
      ...waiting(given, key === undefined ? {} : { "idempotency-key": key }),
    };
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

/** The headers and time limit for waiting on models. */
export function waiting(given: Given, headers: Request["headers"] = {}): Pick<Request, "headers" | "waitSeconds"> {
  if (given.isOn("--no-wait")) return { headers: { ...headers, prefer: "respond-async" } };
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
