/** One stretch of time that is not harvested: why, harvesting it again, or accepting that it is missing. */
import { Link } from "@tanstack/react-router";
import { Drawer } from "../../parts/dialogs/Drawer.tsx";
import { Fields } from "../../parts/page/Fields.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { useWords } from "../../words/words.ts";
import { AcceptGap } from "../AcceptGap.tsx";
import type { Coverage, Stretch } from "../api.ts";
import { HarvestAgain } from "../HarvestAgain.tsx";
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
  const { kind, planId, sliceId, reason, from, to } = stretch;
  const { endpoint, operation, namespace } = cursor;
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
          <HarvestAgain
            source={source}
            endpoint={endpoint}
            operation={operation}
            namespace={namespace}
            window={{ from, to }}
          />
          {planId !== null && sliceId !== null && <AcceptGap planId={planId} sliceId={sliceId} />}
        </>
      )}
    </Drawer>
  );
}
