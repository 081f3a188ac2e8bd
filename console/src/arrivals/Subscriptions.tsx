/** The subscriptions, and why one is disabled. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { act } from "../api/client.ts";
import { type NumberedPage, onEndOf, pageAfter, refresh, useLiveList } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { toast } from "../parts/actions/toasts.tsx";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { FormDialog } from "../parts/dialogs/FormDialog.tsx";
import { ShownOnce } from "../parts/dialogs/ShownOnce.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, type Subscription } from "./api.ts";
import { Receiver } from "./Receiver.tsx";
import { arrivals } from "./words.ts";

const PAGE = 200;

export function Subscriptions() {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const lacked = useWhyNot("kpi:write");
  const result = useLiveList<NumberedPage<Subscription>>(
    (page) => paths.subscriptions({ page, size: PAGE }),
    pageAfter,
    [{ kind: "subscription" }],
  );
  const { run } = useAction();
  const setEnabled = ({ id }: Subscription, isEnabled: boolean) =>
    run(async () => {
      await act(paths.subscription(id), "PATCH", { status: isEnabled ? "1" : "0" });
      await refresh({ kind: "subscription" });
      return isEnabled ? text.enabledAgain : text.disabledNow;
    });
  const [isAdding, setAdding] = useState(false);
  return (
    <Panel
      aside={
        <Button icon="plus" why={lacked} onPress={() => setAdding(true)}>
          {text.subscribe}
        </Button>
      }
    >
      {isAdding && <NewSubscription onClose={() => setAdding(false)} />}
      <Loaded result={result}>
        {(pages) => (
          <DataList
            label={text.subscriptions}
            rows={pages.flatMap(({ items }) => items)}
            total={pages[0]?.total ?? 0}
            keyOf={({ id }) => String(id)}
            live={result.live}
            onEnd={onEndOf(result)}
            empty={text.noSubscriptions}
            columns={[
              {
                name: "state",
                title: shared.state,
                width: "110px",
                cell: (one) => <SubscriptionState one={one} />,
              },
              {
                name: "kpi",
                title: text.toKpi,
                width: "minmax(90px, 1fr)",
                cell: ({ kpiId }) => (
                  <Link to="/arrivals/kpis/$kpiId" params={{ kpiId }}>
                    {kpiId}
                  </Link>
                ),
              },
              {
                name: "endpoint",
                title: text.endpoint,
                width: "minmax(140px, 2fr)",
                cell: ({ id, callbackUrl }) => (
                  <Link to="/arrivals/deliveries" search={{ subscriptionId: id }} title={callbackUrl}>
                    <Receiver url={callbackUrl} />
                  </Link>
                ),
              },
              { name: "team", title: text.team, width: "120px", cell: ({ teamName }) => teamName, wideOnly: true },
              {
                name: "reason",
                title: shared.reason,
                width: "minmax(140px, 2fr)",
                wideOnly: true,
                cell: ({ status, disabledReason, failingSince }) =>
                  status === "0" ? (
                    (disabledReason ?? text.disabledBy)
                  ) : failingSince === null ? (
                    ""
                  ) : (
                    <>
                      {text.failingSince} <Time at={failingSince} />
                    </>
                  ),
              },
              {
                name: "action",
                title: shared.actions,
                width: "100px",
                cell: (one) => (
                  <Button kind="quiet" why={lacked} onPress={() => setEnabled(one, one.status === "0")}>
                    {one.status === "0" ? text.enable : text.disable}
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}

function SubscriptionState({ one: { status, failingSince } }: { one: Subscription }) {
  const text = useWords(arrivals);
  if (status === "0") return <StateMark state="stopped" label={text.disabled} />;
  return failingSince === null ? (
    <StateMark state="success" label={text.enabled} />
  ) : (
    <StateMark state="failed" label={text.failing} />
  );
}

function NewSubscription({ onClose }: { onClose(): void }) {
  const text = useWords(arrivals);
  const [signed, setSigned] = useState<{ kpiId: string; signingKey: string }>();
  if (signed)
    return <ShownOnce title={signed.kpiId} note={text.signingKey} secret={signed.signingKey} onClose={onClose} />;
  return (
    <FormDialog
      title={text.subscribe}
      fields={[
        { name: "kpiId", label: text.toKpi, maxLength: 64 },
        { name: "callbackUrl", label: text.callback, placeholder: "https://example.org/hooks/kpi" },
        { name: "teamName", label: text.team, maxLength: 64, isOptional: true },
        { name: "secret", label: text.secretHeader, isOptional: true },
      ]}
      submit={text.create}
      onClose={onClose}
      onSubmit={async ({ secret, ...fields }) => {
        const body = secret === "" ? fields : { ...fields, secret };
        const { signingKey } = await act<{ signingKey?: string }>(paths.newSubscription, "POST", body);
        await refresh({ kind: "subscription" });
        toast(text.subscribed);
        // Only where the callback is new for the team.
        if (signingKey === undefined) onClose();
        else setSigned({ kpiId: fields.kpiId, signingKey });
      }}
    />
  );
}
