/** Harvests a window once more, by a plan of its own. */
import { useNavigate } from "@tanstack/react-router";
import { act } from "../api/client.ts";
import { refresh } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { useWords } from "../words/words.ts";
import { type Draft, type Operation, paths, type TimeWindow } from "./api.ts";
import { harvestWords } from "./words.ts";

interface HarvestAgainProps {
  source: string;
  endpoint: string;
  operation: Operation;
  namespace: string;
  window: TimeWindow | null;
}

/** Nothing for what has no window, and for what parameters select: they are not known here, only a hash of them. */
export function HarvestAgain({ source, endpoint, operation, namespace, window }: HarvestAgainProps) {
  const text = useWords(harvestWords);
  const navigate = useNavigate();
  const { run, isPending } = useAction();
  const lacked = useWhyNot("harvest:write");
  if (window === null || namespace !== endpoint) return null;
  const { from, to } = window;
  const again = () =>
    run(async () => {
      const body = { source, endpoint, operation, window: { from, to } };
      const made = await act<Draft>(paths.makePlan(false), "POST", body);
      await refresh({ kind: "plan" });
      if (made.planId !== null) await navigate({ to: "/harvest/plans/$planId", params: { planId: made.planId } });
      return text.plannedAgain;
    });
  return (
    <div>
      <Button kind="primary" icon="retry" isDisabled={isPending} why={lacked} onPress={again}>
        {text.harvestAgain}
      </Button>
    </div>
  );
}
