/** One stretch of time that is not harvested: why, harvesting it again, or accepting that it is missing. */
import { Link, useNavigate } from "@tanstack/react-router";
import { act } from "../../api/client.ts";
import { refresh } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Drawer } from "../../parts/dialogs/Drawer.tsx";
import { Fields } from "../../parts/page/Fields.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { useWords } from "../../words/words.ts";
import { AcceptGap } from "../AcceptGap.tsx";
import { type Coverage, type Draft, paths, type Stretch } from "../api.ts";
import styles from "../harvest.module.css";
import { STRETCH_STATES } from "../states.ts";
import { useWindowText } from "../WindowText.tsx";
import { harvestWords } from "../words.ts";

interface StretchDrawerProps {
  source: string;
  cursor: Coverage;
  stretch: Stretch;
  onClose(): void;
}

export function StretchDrawer({ source, cursor, stretch, onClose }: StretchDrawerProps) {
  const text = useWords(harvestWords);
  const windowText = useWindowText();
  const navigate = useNavigate({ from: "/harvest/$source" });
  const { run, isPending } = useAction();
  const lacked = useWhyNot("harvest:write");
  const { kind, planId, sliceId, reason, from, to } = stretch;
  const { endpoint, operation, namespace } = cursor;
  // What parameters select is not known here, only a hash of them.
  const isWhole = namespace === endpoint;
  const again = () =>
    run(async () => {
      const made = await act<Draft>(paths.makePlan(false), "POST", {
        source,
        endpoint,
        operation,
        window: { from, to },
      });
      await refresh({ kind: "plan" });
      if (made.planId !== null) await navigate({ to: "/harvest/plans/$planId", params: { planId: made.planId } });
      return text.plannedAgain;
    });
  return (
    <Drawer
      title={kind === "gap" ? text.gapTitle(windowText(stretch)) : text.stretchTitle(windowText(stretch))}
      onClose={onClose}
    >
      <StateMark state={STRETCH_STATES[kind]} label={text[kind]} />
      {reason !== null && <p className={kind === "gap" ? styles.error : undefined}>{reason}</p>}
      <Fields
        rows={[
          [text.endpoint, endpoint],
          [
            text.slice,
            planId === null || sliceId === null ? null : (
              <Link key="slice" to="/harvest/plans/$planId" params={{ planId }} search={{ slice: sliceId }}>
                {sliceId}
              </Link>
            ),
          ],
        ]}
      />
      {kind === "gap" && (
        <>
          {isWhole && (
            <div>
              <Button kind="primary" icon="retry" isDisabled={isPending} why={lacked} onPress={again}>
                {text.harvestAgain}
              </Button>
            </div>
          )}
          {planId !== null && sliceId !== null && <AcceptGap planId={planId} sliceId={sliceId} />}
        </>
      )}
    </Drawer>
  );
}
