/** One subscription: the state of its endpoint, its deliveries, a test, its key, and its end. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Ask } from "../parts/dialogs/Ask.tsx";
import { Drawer } from "../parts/dialogs/Drawer.tsx";
import { ShownOnce } from "../parts/dialogs/ShownOnce.tsx";
import { CodeText } from "../parts/page/CodeText.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time, useNow } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, type Subscription, type Tested } from "./api.ts";
import styles from "./arrivals.module.css";
import { EndpointState, hasState } from "./EndpointState.tsx";
import { Enable, SubscriptionState } from "./SubscriptionState.tsx";
import { arrivals } from "./words.ts";

const WATCHES = [{ kind: "subscription" }, { kind: "delivery" }] as const;

export function SubscriptionDrawer({ id, onClose }: { id: string; onClose(): void }) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const { time } = useFormats();
  const lacked = useWhyNot("kpi:write");
  const result = useLive<Subscription>(paths.subscription(id), WATCHES, { atMostEveryMs: 2_000 });
  const now = useNow();
  const { isPending, run } = useAction();
  const [asked, setAsked] = useState<"rotate" | "remove">();
  const [tested, setTested] = useState<Tested>();
  const [rotated, setRotated] = useState<{ signingKey: string; previousValidUntil: string }>();

  const test = () =>
    run(async () => {
      const answer = await act<Tested>(paths.testSubscription(id), "POST");
      setTested(answer);
      if (!answer.delivered) throw new Error(text.testFailed);
      return text.testDelivered;
    });
  const rotate = () => {
    setAsked(undefined);
    run(async () => {
      setRotated(await act(paths.rotateKey(id), "POST"));
      return text.keyRotated;
    });
  };
  const remove = () => {
    // At once: the hint of the deletion would let the drawer ask for what is gone.
    onClose();
    run(async () => {
      await act(paths.subscription(id), "DELETE");
      await refresh({ kind: "subscription" });
      return text.subscriptionDeleted;
    });
  };
  return (
    <Drawer
      title={text.ofSubscription(Number(id))}
      onClose={onClose}
      actions={
        result.data && (
          <>
            <Button icon="play" why={lacked} isPending={isPending} onPress={test}>
              {text.test}
            </Button>
            <Enable one={result.data} />
          </>
        )
      }
    >
      {asked === "rotate" && (
        <Ask title={text.rotate} confirm={text.rotateConfirm} onConfirm={rotate} onClose={() => setAsked(undefined)}>
          {text.rotateMeans}
        </Ask>
      )}
      {asked === "remove" && (
        <Ask
          title={text.remove}
          confirm={text.removeConfirm}
          kind="danger"
          onConfirm={remove}
          onClose={() => setAsked(undefined)}
        >
          {text.removeMeans}
        </Ask>
      )}
      {rotated && (
        <ShownOnce
          title={text.rotate}
          note={text.newKey(time(rotated.previousValidUntil))}
          secret={rotated.signingKey}
          onClose={() => setRotated(undefined)}
        />
      )}
      <Loaded result={result}>
        {(one) => (
          <>
            <Fields
              rows={[
                [shared.state, <SubscriptionState key="state" one={one} />],
                [
                  shared.reason,
                  one.status === "0" && one.disabledReason === null
                    ? text.disabledBy
                    : hasState(one, now) && <EndpointState key="reason" {...one} />,
                ],
                [
                  text.toKpi,
                  <Link key="kpi" to="/arrivals/kpis/$kpiId" params={{ kpiId: one.kpiId }}>
                    {one.kpiId}
                  </Link>,
                ],
                [text.endpoint, one.callbackUrl],
                [text.team, one.teamName],
                [text.retry, one.retryNum],
                [text.secretPlace, one.secretType && text.secretAt(text[`secret${one.secretType}`], one.secretKey)],
                [text.subscribedAt, <Time key="made" at={one.createdAt} />],
              ]}
            />
            {tested && <Test tested={tested} />}
            <p className={styles.pair}>
              <Link to="/arrivals/deliveries" search={{ subscriptionId: one.id, status: "FAILED" }}>
                {text.failedDeliveries}
              </Link>
              <Link to="/arrivals/deliveries" search={{ subscriptionId: one.id, status: "PENDING" }}>
                {text.pendingDeliveries(one.pending)}
              </Link>
              <Link to="/arrivals/deliveries" search={{ subscriptionId: one.id }}>
                {text.allDeliveries}
              </Link>
            </p>
            <p className={styles.pair}>
              <Button why={lacked} onPress={() => setAsked("rotate")}>
                {text.rotate}
              </Button>
              <Button kind="danger" why={lacked} onPress={() => setAsked("remove")}>
                {text.remove}
              </Button>
            </p>
          </>
        )}
      </Loaded>
    </Drawer>
  );
}

function Test({ tested: { delivered, statusCode, error, answer, durationMs } }: { tested: Tested }) {
  const text = useWords(arrivals);
  return (
    <section className={styles.section}>
      <h3>{text.testAnswer}</h3>
      <span className={styles.pair}>
        <StateMark state={delivered ? "success" : "failed"} label={String(statusCode ?? "")} />
        <span className={styles.soft}>{durationText(durationMs)}</span>
      </span>
      {error !== null && <span className={styles.reason}>{error}</span>}
      {answer !== null && answer !== "" && <CodeText>{answer}</CodeText>}
    </section>
  );
}
