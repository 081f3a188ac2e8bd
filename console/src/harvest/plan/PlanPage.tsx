/** One plan: how far it is, whether all that was announced has come, its runs by time, and its slices with their reasons. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { act } from "../../api/client.ts";
import { refresh, useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Dialog } from "../../parts/dialogs/Dialog.tsx";
import { Split } from "../../parts/dialogs/Drawer.tsx";
import { Loaded, Page, Panel } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Elapsed } from "../../parts/times/Elapsed.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import { type PlanDetail, paths } from "../api.ts";
import { PausedMark, PauseList } from "../control/Pauses.tsx";
import styles from "../harvest.module.css";
import { planWords } from "../plan-words.ts";
import { planRoute } from "../routes.ts";
import { PLAN_STATES } from "../states.ts";
import { usePlanSearch } from "../use-search.ts";
import { WindowText } from "../WindowText.tsx";
import { harvestWords } from "../words.ts";
import { Progress } from "./Progress.tsx";
import { SliceDrawer } from "./SliceDrawer.tsx";
import { SliceList } from "./SliceList.tsx";
import { TimeLine } from "./TimeLine.tsx";

export function PlanPage() {
  const { planId } = planRoute.useParams();
  return <PlanPageOf key={planId} planId={planId} />;
}

function PlanPageOf({ planId }: { planId: string }) {
  const text = useWords(planWords);
  const states = useWords(harvestWords);
  const { search, set } = usePlanSearch(planId);
  const { slice, run, status } = search;
  const result = useLive<PlanDetail>(paths.plan(planId), [{ kind: "plan", id: planId }, { kind: "source" }]);
  const plan = result.data;
  return (
    <Page
      title={
        plan ? (
          <>
            <Link to="/harvest/$source" params={{ source: plan.source }}>
              {plan.source}
            </Link>{" "}
            / {plan.endpoint}
          </>
        ) : (
          states.plan
        )
      }
      aside={
        plan &&
        (plan.paused === null ? (
          <StateMark state={PLAN_STATES[plan.status]} label={states[plan.status]} />
        ) : (
          <PausedMark />
        ))
      }
      actions={plan && plan.endedAt === null && <CancelPlan plan={plan} />}
    >
      {plan && plan.paused !== null && <PauseList source={plan.source} of={plan} />}
      <Loaded result={result}>{(data) => <Facts plan={data} />}</Loaded>
      <Split
        drawer={
          slice !== undefined && (
            <SliceDrawer
              key={slice}
              planId={planId}
              plan={plan}
              sliceId={slice}
              openRun={run}
              onRun={(next) => set({ run: next })}
              onClose={() => set({ slice: undefined, run: undefined })}
            />
          )
        }
      >
        {plan && (
          <Panel title={text.progress}>
            <Progress plan={plan} />
          </Panel>
        )}
        <TimeLine planId={planId} selected={slice} onOpen={(next, of) => set({ slice: next, run: of })} />
        <SliceList
          planId={planId}
          counts={plan?.slices}
          status={status}
          selected={slice}
          onStatus={(next) => set({ status: next })}
          onOpen={(next) => set({ slice: next, run: undefined })}
        />
      </Split>
    </Page>
  );
}

function Facts({ plan }: { plan: PlanDetail }) {
  const text = useWords(planWords);
  const { remarks, status, window, operation, priority, createdAt, endedAt } = plan;
  return (
    <>
      {remarks.reason !== undefined && (
        <p className={status === "FAILED" ? styles.reason : undefined}>{remarks.reason}</p>
      )}
      <div className={styles.facts}>
        <WindowText window={window} />
        <span>{text[operation]}</span>
        <span>
          {text.priority} {priority}
        </span>
        <Time at={createdAt} />
        <span>
          <Elapsed from={createdAt} to={endedAt} />
        </span>
        <code>{plan.planId}</code>
      </div>
    </>
  );
}

function CancelPlan({ plan }: { plan: PlanDetail }) {
  const text = useWords(planWords);
  const { number } = useFormats();
  const lacked = useWhyNot("harvest:control");
  const { run, isPending } = useAction();
  const [isAsking, setAsking] = useState(false);
  const cancel = () =>
    run(async () => {
      await act(paths.cancel(plan.planId), "POST");
      setAsking(false);
      await refresh({ kind: "plan" });
      return text.cancelled;
    });
  return (
    <>
      <Button kind="danger" icon="stop" why={lacked} onPress={() => setAsking(true)}>
        {text.cancelPlan}
      </Button>
      <Dialog
        title={text.cancelTitle}
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        footer={
          <>
            <Button onPress={() => setAsking(false)}>{text.keepIt}</Button>
            <Button kind="danger" isDisabled={isPending} onPress={cancel}>
              {text.cancelPlan}
            </Button>
          </>
        }
      >
        <p>{text.cancelExplained(number(plan.slices.READY ?? 0))}</p>
      </Dialog>
    </>
  );
}
