/** `millrace harvest why`: why a slice does not finish. */
import { pathTo } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import { printable, toSeconds } from "../common/output.ts";
import { withPlanHint } from "./api.ts";

export interface WhyReply {
  sliceId: number;
  status: string;
  causes: { code: string; sentence: string; since: string | null; until: string | null }[];
}

export const why = serverCommand<WhyReply>({
  summary: "Say why a slice does not finish",
  details: `Whether it runs, waits for a gate, a quota, a source that is down, its turn or a worker, is paused, was split, or ended with a gap.
\`millrace harvest status PLAN\` lists the slices that are open or ended with a gap, and \`tasks --plan PLAN\` all of them.`,
  args: "PLAN SLICE",
  flags: [],
  examples: ["millrace harvest why 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b 17"],
  execute(client, given) {
    const planId = given.text("PLAN");
    const path = pathTo`api/v1/harvest/plans/${planId}/slices/${given.text("SLICE")}/why`;
    return withPlanHint(planId, () => client.call<WhyReply>({ method: "GET", path }));
  },
  show: whyText,
});

export function whyText({ sliceId, status, causes }: WhyReply): string {
  const lines = causes.map(({ code, sentence, since, until }) => {
    const times = [
      since === null ? "" : ` Since ${toSeconds(since)}.`,
      until === null ? "" : ` Until ${toSeconds(until)}.`,
    ].join("");
    return `${code}: ${printable(sentence)}${times}`;
  });
  return [`Slice ${sliceId} is ${status}.`, ...lines].join("\n");
}
