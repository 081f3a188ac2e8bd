/** Deliveries of webhooks with their attempts, sending them again, and the subscriptions that they go to. */
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { act } from "../api/client.ts";
import { onEndOf, refresh, useLiveList } from "../api/live.ts";
import { isInPlace } from "../app/search-values.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { toast, toastError } from "../parts/actions/toasts.tsx";
import { Button } from "../parts/controls/Button.tsx";
import { Filters } from "../parts/controls/Filters.tsx";
import { Segments } from "../parts/controls/Segments.tsx";
import { Filter, Select } from "../parts/controls/Select.tsx";
import { Tabs } from "../parts/controls/Tabs.tsx";
import { Ask } from "../parts/dialogs/Ask.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { Loaded, Page, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type Delivery, type DeliveryStatus, paths } from "./api.ts";
import styles from "./arrivals.module.css";
import { DeliveryDrawer } from "./DeliveryDrawer.tsx";
import { DeliveryReason } from "./EndpointState.tsx";
import { Receiver } from "./Receiver.tsx";
import type { DeliveriesSearch } from "./routes.ts";
import { Subscriptions } from "./Subscriptions.tsx";
import { SINCE_NAMES, sinceOf } from "./since.ts";
import { DELIVERY_STATES } from "./states.ts";
import { arrivals } from "./words.ts";

const STATUSES = [
  "FAILED",
  "PENDING",
  "SENDING",
  "DELIVERED",
  "CANCELLED",
] as const satisfies readonly DeliveryStatus[];
const PAGE = 200;
/** Everything that is kept. */
const EVER = "1970-01-01T00:00:00Z";

const NO_FILTERS = {
  status: undefined,
  since: undefined,
  modelId: undefined,
  opTime: undefined,
  subscriptionId: undefined,
} satisfies DeliveriesSearch;

interface DeliveryPage {
  items: readonly Delivery[];
  next: string | null;
}

export function DeliveriesPage() {
  const text = useWords(arrivals);
  const search: DeliveriesSearch = useSearch({ strict: false });
  const isDeliveries = search.tab === undefined;
  return (
    <Page title={text.deliveries}>
      <Tabs
        label={text.views}
        current={search.tab ?? "deliveries"}
        isSeparate
        tabs={[
          { name: "deliveries", title: text.deliveries },
          { name: "subscriptions", title: text.subscriptions },
        ]}
      />
      {isDeliveries ? <Deliveries search={search} /> : <Subscriptions search={search} />}
    </Page>
  );
}

function Deliveries({ search }: { search: DeliveriesSearch }) {
  const text = useWords(arrivals);
  const navigate = useNavigate();
  const lacked = useWhyNot("kpi:write");
  const { status, modelId, opTime, subscriptionId, id } = search;
  // Computed once: a moving start time would be a new list every minute and lose the loaded pages and the scroll position.
  const since = useMemo(() => sinceOf(search.since), [search.since]);
  const which = { status, modelId, opTime, subscriptionId, since };
  const set = (change: Partial<DeliveriesSearch>) =>
    void navigate({
      to: "/arrivals/deliveries",
      search: { ...search, ...change },
      replace: isInPlace(search, change, "id"),
    });
  const result = useLiveList<DeliveryPage>(
    (after) => paths.deliveries({ ...which, after, limit: PAGE }),
    ({ next }) => next,
    [{ kind: "delivery" }],
  );
  const [count, setCount] = useState<number>();
  const inUse = [status, search.since, modelId, opTime, subscriptionId].filter((one) => one !== undefined).length;
  // Only finished deliveries can be redelivered; the default is FAILED.
  const again = {
    ...Object.fromEntries(Object.entries(which).filter(([, value]) => value !== undefined)),
    since: since ?? EVER,
    status: status === "CANCELLED" || status === "DELIVERED" ? status : "FAILED",
  } as const;
  const recover = (isDry: boolean) => act<{ recovered: number }>(paths.recover(isDry), "POST", again);
  const preview = () => void recover(true).then(({ recovered }) => setCount(recovered), toastError);

  return (
    <>
      <Filters
        inUse={inUse}
        aside={
          <Button icon="retry" why={lacked} isDisabled={status === "PENDING" || status === "SENDING"} onPress={preview}>
            {text.redeliverAll}
          </Button>
        }
      >
        <Select
          label={text.status}
          value={status ?? ""}
          options={[["", text.anyStatus], ...STATUSES.map((one) => [one, text[one]] as const)]}
          onChange={(next) => set({ status: next === "" ? undefined : next })}
        />
        <Since value={search.since} sinceTime={since} onChange={(next) => set({ since: next })} />
        <span className={styles.short}>
          <Filter label={text.model} value={modelId ?? ""} onChange={(next) => set({ modelId: next || undefined })} />
          <Filter label={text.opTime} value={opTime ?? ""} onChange={(next) => set({ opTime: next || undefined })} />
        </span>
        {subscriptionId !== undefined && (
          <Link to="/arrivals/deliveries" search={{ ...search, subscriptionId: undefined }}>
            {text.ofSubscription(subscriptionId)} ✕
          </Link>
        )}
      </Filters>
      <Split
        drawer={
          id === undefined ? undefined : <DeliveryDrawer key={id} id={id} onClose={() => set({ id: undefined })} />
        }
      >
        <Panel>
          <Loaded result={result}>
            {(pages) => (
              <DeliveryList
                items={pages.flatMap(({ items }) => items)}
                live={result.live}
                selected={id}
                onOpen={(next) => set({ id: next })}
                onEnd={onEndOf(result)}
                onClear={inUse > 0 ? () => set(NO_FILTERS) : undefined}
              />
            )}
          </Loaded>
        </Panel>
      </Split>
      <RedeliverAll
        count={count}
        status={again.status}
        onClose={() => setCount(undefined)}
        onConfirm={() => recover(false)}
      />
    </>
  );
}

interface SinceProps {
  value: string | undefined;
  /** The time that `value` resolves to. */
  sinceTime: string | undefined;
  onChange(value: string | undefined): void;
}

function Since({ value, sinceTime, onChange }: SinceProps) {
  const text = useWords(arrivals);
  const { time } = useFormats();
  const named = SINCE_NAMES.map((name) => [name, text[name]] as const);
  const isNamed = named.some(([name]) => name === value);
  // A link may have any time.
  const written = isNamed || value === undefined || sinceTime === undefined ? [] : [[value, time(sinceTime)] as const];
  return (
    <Segments
      label={text.since}
      value={sinceTime === undefined ? "" : (value ?? "")}
      options={[["", text.allTime], ...named, ...written]}
      onChange={(next) => onChange(next === "" ? undefined : next)}
    />
  );
}

interface DeliveryListProps {
  items: readonly Delivery[];
  live: string | undefined;
  selected: string | undefined;
  onOpen(id: string): void;
  onEnd: (() => void) | undefined;
  onClear: (() => void) | undefined;
}

function DeliveryList({ items, live, selected, onOpen, onEnd, onClear }: DeliveryListProps) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  return (
    <DataList
      label={text.deliveries}
      rows={items}
      keyOf={({ id }) => id}
      live={live}
      selected={selected}
      onOpen={({ id }) => onOpen(id)}
      onEnd={onEnd}
      empty={text.noDeliveries}
      {...(onClear && { onClear })}
      columns={[
        {
          name: "time",
          title: shared.time,
          width: "146px",
          cell: (one) => <Time at={one.createdAt} />,
          wideOnly: true,
        },
        {
          name: "status",
          title: text.status,
          width: "88px",
          cell: (one) => <StateMark state={DELIVERY_STATES[one.status]} label={text[one.status]} />,
        },
        {
          name: "what",
          title: text.what,
          width: "minmax(124px, 1fr)",
          cell: (one) => {
            const what = one.kpiIds.length > 0 ? one.kpiIds.join(", ") : one.event;
            return <span title={what}>{what}</span>;
          },
          wideOnly: true,
        },
        { name: "opTime", title: text.opTime, width: "74px", cell: (one) => one.opTime ?? "" },
        {
          name: "endpoint",
          title: text.endpoint,
          width: "minmax(64px, 5fr)",
          cell: (one) => (one.callbackUrl === null ? one.alert : <Receiver url={one.callbackUrl} />),
        },
        {
          name: "reason",
          title: shared.reason,
          width: "minmax(90px, 6fr)",
          cell: (one) => (
            <span title={one.error ?? ""}>
              <span className="narrow-only">
                <Time at={one.createdAt} /> {one.attempts > 1 && text.attempt(one.attempts)}{" "}
              </span>
              <DeliveryReason one={one} />
            </span>
          ),
          isBelow: true,
        },
        {
          name: "attempts",
          title: text.attempts,
          width: "62px",
          align: "end",
          cell: (one) => one.attempts,
          wideOnly: true,
        },
        {
          name: "latency",
          title: text.latency,
          width: "54px",
          align: "end",
          cell: (one) => (one.durationMs === null ? "" : durationText(one.durationMs)),
          wideOnly: true,
        },
      ]}
    />
  );
}

interface RedeliverAllProps {
  count: number | undefined;
  /** Status of the deliveries to redeliver. */
  status: DeliveryStatus;
  onClose(): void;
  onConfirm(): Promise<{ recovered: number }>;
}

/** Redelivers all matches, including those that are not loaded: the server counts and sends them. */
function RedeliverAll({ count, status, onClose, onConfirm }: RedeliverAllProps) {
  const text = useWords(arrivals);
  const { number } = useFormats();
  async function confirm(): Promise<void> {
    try {
      const { recovered } = await onConfirm();
      toast(text.redeliveredAll(number(recovered)));
      await refresh({ kind: "delivery" });
    } catch (error) {
      toastError(error);
    }
    onClose();
  }
  if (count === undefined) return null;
  return (
    <Ask
      title={text.redeliver}
      confirm={text.redeliverConfirm(number(count))}
      isDisabled={count === 0}
      onConfirm={() => void confirm()}
      onClose={onClose}
    >
      {count === 0 ? text.redeliverNone(text[status]) : text.redeliverCount(number(count), text[status])}
    </Ask>
  );
}
