/** The rate gates that requests of a source pass: the limit in force, what is used of it, and why it is slow. */
import { useState } from "react";
import { act } from "../../api/client.ts";
import { refresh, useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Dialog } from "../../parts/dialogs/Dialog.tsx";
import { Empty, Loaded, Panel } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { durationText } from "../../parts/times/durations.ts";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { type Gate, paths } from "../api.ts";
import { Figures } from "../Figures.tsx";
import styles from "../harvest.module.css";
import { harvestWords } from "../words.ts";
import { type GateReason, reasonsOf } from "./gate-reasons.ts";
import { rateText } from "./rate-text.ts";

const AGAIN_MS = 10_000;

export function GatesTab({ source }: { source: string }) {
  const text = useWords(harvestWords);
  // Counts of gates change without hints; those of plans come with every page of a run, but not while all of them wait.
  const result = useLive<{ items: readonly Gate[] }>(paths.gates(source), [{ kind: "gate" }, { kind: "plan" }], {
    atLeastEveryMs: AGAIN_MS,
  });
  return (
    <Loaded result={result}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty>{text.noGates}</Empty>
        ) : (
          <>
            {items.map((gate) => (
              <GatePanel key={gate.key} gate={gate} />
            ))}
          </>
        )
      }
    </Loaded>
  );
}

function GatePanel({ gate }: { gate: Gate }) {
  const text = useWords(harvestWords);
  const { number } = useFormats();
  const reasons = reasonsOf(gate);
  const places = gate.headerConcurrency ?? gate.concurrency;
  const makers = { operator: text.byOperator, source: text.bySource };
  return (
    <Panel title={gate.key} aside={<OpenGate gate={gate} isSlow={reasons.length > 0} />}>
      <div className={styles.stack}>
        <section className={styles.section}>
          {reasons.length > 0 && <h3>{text.whySlow}</h3>}
          {reasons.length === 0 ? (
            <p>
              <StateMark state="success" label={text.notSlow} isSentence />
            </p>
          ) : (
            <ul className={styles.lines}>
              {reasons.map((reason) => (
                <Reason key={JSON.stringify(reason)} reason={reason} />
              ))}
            </ul>
          )}
        </section>
        <Figures
          of={[
            [
              text.limitInForce,
              <>
                {text.perSecond(rateText(gate.currentRatePerSec))}{" "}
                <span className={styles.soft}>{text.ofDeclared(rateText(gate.ratePerSec))}</span>
              </>,
            ],
            [text.cooldown, gate.cooldownUntil && <Time key="until" at={gate.cooldownUntil} relative due />],
            [text.lastCut, gate.lastCutAt && <Time key="cut" at={gate.lastCutAt} relative />],
            [text.burst, number(gate.burst)],
            [text.places, places === null ? null : text.placesTaken(gate.slotsTaken, places)],
            [text.queue, gate.backlogMs > 0 ? durationText(gate.backlogMs) : null],
            [text.waitingTasks, gate.waiting > 0 ? number(gate.waiting) : null],
            [text.declaredBy, gate.declaredBy === null ? text.byNobody : makers[gate.declaredBy]],
          ]}
        />
        {gate.quotas.map((quota) => (
          <Quota key={`${quota.unit} ${quota.windowSec}`} quota={quota} />
        ))}
      </div>
    </Panel>
  );
}

function Reason({ reason }: { reason: GateReason }) {
  const label = useReason(reason);
  return (
    <li>
      <StateMark state={reason.why === "cooldown" ? "stopped" : "waiting"} label={label} isSentence />
    </li>
  );
}

function useReason(reason: GateReason): string {
  const text = useWords(harvestWords);
  const units = useUnits();
  switch (reason.why) {
    case "cooldown":
      return text.whyCooldown;
    case "quota":
      return text.whyQuota(units[reason.unit]);
    case "cut":
      return text.whyCut;
    case "header":
      return text.whyHeader(rateText(reason.ratePerSec));
    case "warm":
      return text.whyWarm;
    case "places":
      return text.whyPlaces;
    case "queue":
      return text.whyQueue(durationText(reason.ms));
  }
}

function useUnits(): Record<Gate["quotas"][number]["unit"], string> {
  const text = useWords(harvestWords);
  return { requests: text.unitRequests, credits: text.unitCredits, usd_micros: text.unitDollars };
}

function Quota({ quota }: { quota: Gate["quotas"][number] }) {
  const text = useWords(harvestWords);
  const units = useUnits();
  const { number } = useFormats();
  const { used, limit, unit, windowSec, resetAt } = quota;
  return (
    <section className={styles.section}>
      <div className={styles.pair}>
        <b>{text.quota}</b>
        <span>
          {text.quotaText(number(used), number(limit), units[unit])} / {durationText(windowSec * 1_000)}
        </span>
        <span className={styles.soft}>
          {text.resets} <Time at={resetAt} relative due />
        </span>
      </div>
      <meter className={styles.meter} min={0} max={limit} value={used} aria-label={`${text.quota} ${units[unit]}`} />
    </section>
  );
}

function OpenGate({ gate: { key }, isSlow }: { gate: Gate; isSlow: boolean }) {
  const text = useWords(harvestWords);
  const shared = useWords(common);
  const lacked = useWhyNot("admin");
  const { run, isPending } = useAction();
  const [isAsking, setAsking] = useState(false);
  if (!isSlow) return null;
  const open = () =>
    run(async () => {
      await act(paths.openGate(key), "POST");
      setAsking(false);
      await refresh({ kind: "gate" });
      return text.gateOpened;
    });
  return (
    <>
      <Button icon="play" why={lacked} onPress={() => setAsking(true)}>
        {text.openGate}
      </Button>
      <Dialog
        title={text.openGateTitle(key)}
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        footer={
          <>
            <Button onPress={() => setAsking(false)}>{shared.cancel}</Button>
            <Button kind="primary" isDisabled={isPending} onPress={open}>
              {text.openGate}
            </Button>
          </>
        }
      >
        <p>{text.openGateExplained}</p>
      </Dialog>
    </>
  );
}
