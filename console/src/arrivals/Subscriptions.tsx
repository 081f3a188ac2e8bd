/** The subscriptions: the state of each, why one is disabled or waits, and how many of its deliveries are to be sent. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { type NumberedPage, onEndOf, pageAfter, useLiveList } from "../api/live.ts";
import { isInPlace } from "../app/search-values.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, type Subscription } from "./api.ts";
import { EndpointState } from "./EndpointState.tsx";
import { NewSubscription } from "./NewSubscription.tsx";
import { Receiver } from "./Receiver.tsx";
import type { DeliveriesSearch } from "./routes.ts";
import { SubscriptionDrawer } from "./SubscriptionDrawer.tsx";
import { Enable, SubscriptionState } from "./SubscriptionState.tsx";
import { arrivals } from "./words.ts";

const PAGE = 200;

export function Subscriptions({ search }: { search: DeliveriesSearch }) {
  const { id } = search;
  const text = useWords(arrivals);
  const lacked = useWhyNot("kpi:write");
  const navigate = useNavigate();
  const result = useLiveList<NumberedPage<Subscription>>(
    (page) => paths.subscriptions({ page, size: PAGE }),
    pageAfter,
    [{ kind: "subscription" }, { kind: "delivery" }],
    { atMostEveryMs: 2_000 },
  );
  const [isAdding, setAdding] = useState(false);
  const open = (next: string | undefined) =>
    void navigate({
      to: "/arrivals/deliveries",
      search: { tab: "subscriptions", id: next },
      replace: isInPlace(search, { id: next }, "id"),
    });
  return (
    <Split drawer={id !== undefined && <SubscriptionDrawer key={id} id={id} onClose={() => open(undefined)} />}>
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
            <SubscriptionList
              items={pages.flatMap(({ items }) => items)}
              total={pages[0]?.total ?? 0}
              live={result.live}
              selected={id}
              onOpen={open}
              onEnd={onEndOf(result)}
            />
          )}
        </Loaded>
      </Panel>
    </Split>
  );
}

interface SubscriptionListProps {
  items: readonly Subscription[];
  total: number;
  live: string | undefined;
  selected: string | undefined;
  onOpen(id: string): void;
  onEnd: (() => void) | undefined;
}

function SubscriptionList({ items, selected, onOpen, ...rest }: SubscriptionListProps) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const { number } = useFormats();
  return (
    <DataList
      {...rest}
      label={text.subscriptions}
      rows={items}
      keyOf={({ id }) => String(id)}
      selected={selected}
      onOpen={({ id }) => onOpen(String(id))}
      empty={text.noSubscriptions}
      columns={[
        { name: "state", title: shared.state, width: "92px", cell: (one) => <SubscriptionState one={one} /> },
        {
          name: "kpi",
          title: text.toKpi,
          width: "minmax(80px, 2fr)",
          cell: ({ kpiId }) => (
            <Link to="/arrivals/kpis/$kpiId" params={{ kpiId }} title={kpiId}>
              {kpiId}
            </Link>
          ),
        },
        {
          name: "endpoint",
          title: text.endpoint,
          width: "minmax(100px, 5fr)",
          cell: ({ id, callbackUrl }) => (
            <Link to="/arrivals/deliveries" search={{ subscriptionId: id }} title={callbackUrl}>
              <Receiver url={callbackUrl} />
            </Link>
          ),
        },
        { name: "team", title: text.team, width: "70px", cell: ({ teamName }) => teamName, wideOnly: true },
        {
          name: "reason",
          title: shared.reason,
          width: "minmax(140px, 9fr)",
          wideOnly: true,
          cell: (one) =>
            one.status === "0" && one.disabledReason === null ? text.disabledBy : <EndpointState {...one} />,
        },
        {
          name: "deliveries",
          title: text.deliveries,
          width: "150px",
          wideOnly: true,
          cell: ({ id, pending }) => (
            <>
              <Link to="/arrivals/deliveries" search={{ subscriptionId: id, status: "FAILED" }}>
                {text.FAILED}
              </Link>
              {pending > 0 && (
                <>
                  {" · "}
                  <Link to="/arrivals/deliveries" search={{ subscriptionId: id, status: "PENDING" }}>
                    {number(pending)} {text.PENDING}
                  </Link>
                </>
              )}
            </>
          ),
        },
        { name: "action", title: shared.actions, width: "84px", cell: (one) => <Enable one={one} kind="quiet" /> },
      ]}
    />
  );
}
