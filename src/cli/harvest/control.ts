/** `millrace harvest cancel` and `accept`: end a plan, and accept a gap that stays. */
import { OperatorError } from "../../kernel/errors.ts";
import { pathTo } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import type { Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable } from "../common/output.ts";
import { type Accepted, type PlanDetail, type Window, withPlanHint } from "./api.ts";
import { nameOf, shownWindow } from "./plan-text.ts";

interface Slice {
  sliceId: number;
  window: Window;
  status: string;
  accepted: Accepted | null;
}

const cancel = serverCommand<PlanDetail | Slice>({
  summary: "Cancel a plan with its open slices and tasks, or one slice of it",
  details: `What is committed stays, and the watermark does not pass what is missing. With --slice or --task, the rest of the plan goes on, and ends FAILED
because of what is missing; \`millrace harvest status PLAN\` lists the open slices with their ids, and \`millrace harvest tasks\` the tasks. If it can stay missing, accept the gap with
\`millrace harvest accept\`.`,
  args: "[PLAN]",
  flags: [
    { usage: "--slice <id>", description: "This slice of the plan only, with its task." },
    { usage: "--task <id>", description: "This task only, with its slice; instead of a plan." },
  ],
  examples: [
    "millrace harvest cancel 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b",
    "millrace harvest cancel 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b --slice 17",
    "millrace harvest cancel --task 29",
  ],
  execute(client, given) {
    const { planId, path } = cancelledBy(given);
    const cancelled = () => client.call<PlanDetail | Slice>({ method: "POST", path: `${path}:cancel` });
    return planId === undefined ? cancelled() : withPlanHint(planId, cancelled);
  },
  show: (ended) =>
    "planId" in ended
      ? `Cancelled plan ${printable(ended.planId)} of ${nameOf(ended)}.`
      : `Cancelled slice ${ended.sliceId}${ended.window === null ? "" : `, ${shownWindow(ended.window)}`}.`,
});

function cancelledBy(given: Given): { planId?: string; path: string } {
  const [planId, slice, task] = [given.maybeText("PLAN"), given.maybeText("--slice"), given.maybeText("--task")];
  if (task !== undefined && planId === undefined && slice === undefined) {
    return { path: pathTo`api/v1/harvest/tasks/${task}` };
  }
  if (planId === undefined || task !== undefined) {
    throw new OperatorError("Give a PLAN, with or without --slice, or --task alone.", EXIT.usage);
  }
  const whole = pathTo`api/v1/harvest/plans/${planId}`;
  return { planId, path: slice === undefined ? whole : `${whole}${pathTo`/slices/${slice}`}` };
}

const accept = serverCommand<Slice>({
  summary: "Accept a gap that stays, so that the watermark passes it",
  details: `A gap is a slice that is FAILED or INCOMPLETE, or was cancelled without its plan; \`millrace harvest status PLAN\` lists them with their ids. It keeps its state, and
who accepted it and why is shown with it. Its window does not land. Harvest the window again to fill it after all.`,
  args: "PLAN SLICE",
  flags: [{ usage: "--reason <text>", description: "Why what is missing can be missing.", required: true }],
  examples: [
    'millrace harvest accept 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b 17 --reason "over the cap of the source, and not needed"',
  ],
  execute(client, given) {
    const planId = given.text("PLAN");
    const path = pathTo`api/v1/harvest/plans/${planId}/slices/${given.text("SLICE")}:accept`;
    return withPlanHint(planId, () =>
      client.call<Slice>({ method: "POST", path, body: { reason: given.text("--reason") } }),
    );
  },
  show({ sliceId, window, status, accepted }) {
    const where = window === null ? "" : `, ${shownWindow(window)}`;
    return `Slice ${sliceId}${where}, is ${status} and accepted by ${printable(accepted?.by ?? "")}: ${printable(accepted?.reason ?? "")}`;
  },
});

export const control = { cancel, accept };
