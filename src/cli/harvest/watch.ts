/** Watches a plan until it is over, for `run` and `status --follow`. */
import type { Client } from "../common/client.ts";
import { EXIT, INTERRUPTED } from "../common/exit-codes.ts";
import { printable } from "../common/output.ts";
import { stopSignals } from "../common/stop-signals.ts";
import { exitCodeFor } from "./api.ts";
import { followPlan } from "./follow.ts";
import { drawnView, jsonView, linesView, type PlanView } from "./views.ts";

/** For the help of the commands that watch a plan. */
export const WATCH_DETAILS = `On a terminal a bar shows the slices, the records, their speed and the time that is left; otherwise there
is a line every few seconds. Lost connections are re-established. At the end come the reconciliation, the windows that landed and the
gaps.

Exits with 0 if the plan is COMPLETE and its windows have landed, with ${EXIT.failed} if it is FAILED, a window could not land, or all that is left
waits because access to the endpoint is refused, and with ${EXIT.runStopped} if it is CANCELLED. Ctrl-C ends the command, not the plan, and exits with ${INTERRUPTED}.`;

export interface WatchOptions {
  json: boolean;
  /** The command has made it just now. */
  made?: { params: readonly string[] };
}

/** Returns the exit code. */
export async function watchPlan(client: Client, planId: string, { json, made }: WatchOptions): Promise<number> {
  const view = viewFor(json, made?.params);
  const stopping = stopSignals(() => view.close());
  try {
    const plan = await followPlan(client, planId, { follower: view, exists: made !== undefined, signal: stopping });
    view.onEnd(plan);
    return exitCodeFor(plan);
  } catch (error) {
    if (!stopping.aborted) throw error;
  } finally {
    view.close();
  }
  const name = printable(planId);
  process.stderr.write(`Plan ${name} goes on. Follow it with \`millrace harvest status ${name} --follow\`.\n`);
  return INTERRUPTED;
}

function viewFor(json: boolean, params: readonly string[] | undefined): PlanView {
  if (json) return jsonView();
  const isDrawable = process.stdout.isTTY && process.env["TERM"] !== "dumb";
  return isDrawable ? drawnView(process.stdout, params) : linesView(params);
}
