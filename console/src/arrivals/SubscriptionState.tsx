/** What the list of subscriptions and the drawer of one have in common: its state, and the switch. */
import { act } from "../api/client.ts";
import { refresh } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { useWords } from "../words/words.ts";
import { paths, type Subscription } from "./api.ts";
import { arrivals } from "./words.ts";

export function SubscriptionState({ one: { status, failingSince } }: { one: Subscription }) {
  const text = useWords(arrivals);
  if (status === "0") return <StateMark state="stopped" label={text.disabled} />;
  return failingSince === null ? (
    <StateMark state="success" label={text.enabled} />
  ) : (
    <StateMark state="failed" label={text.failing} />
  );
}

export function Enable({ one: { id, status }, kind }: { one: Subscription; kind?: "quiet" }) {
  const text = useWords(arrivals);
  const lacked = useWhyNot("kpi:write");
  const { isPending, run } = useAction();
  const isEnabled = status === "1";
  const change = () =>
    run(async () => {
      await act(paths.subscription(id), "PATCH", { status: isEnabled ? "0" : "1" });
      await refresh({ kind: "subscription" });
      return isEnabled ? text.disabledNow : text.enabledAgain;
    });
  return (
    <Button kind={kind ?? "plain"} why={lacked} isPending={isPending} onPress={change}>
      {isEnabled ? text.disable : text.enable}
    </Button>
  );
}
