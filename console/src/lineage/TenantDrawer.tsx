/** One tenant: how much it has, what waits, its models and keys, and the steps from its state to the next. */
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Dialog } from "../parts/dialogs/Dialog.tsx";
import { Drawer } from "../parts/dialogs/Drawer.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { atLeast, KINDS, paths, type Ready, type Statistics, type Tenant, type TenantModel } from "./api.ts";
import styles from "./lineage.module.css";
import { TENANT_STATES } from "./states.ts";
import { lineage } from "./words.ts";

interface TenantDrawerProps {
  tenant: Tenant;
  /** The names of its keys, for who may see them. */
  keys: readonly string[] | undefined;
  onClose(): void;
}

export function TenantDrawer({ tenant, keys, onClose }: TenantDrawerProps) {
  const text = useWords(lineage);
  const { number } = useFormats();
  const id = String(tenant.id);
  const watches = [{ kind: "tenant", id }, { kind: "dead-letter" }];
  const statistics = useLive<Statistics>(paths.statistics(id), watches);
  const model = useLive<TenantModel>(paths.model(id), watches).data?.model;
  const modelText = (one: { provider: string; model: string } | undefined) => one && `${one.provider} / ${one.model}`;
  return (
    <Drawer title={`${tenant.code} · ${tenant.name}`} onClose={onClose} actions={<Steps tenant={tenant} />}>
      <StateMark state={TENANT_STATES[tenant.state]} label={text[tenant.state]} />
      <p className={styles.soft}>{text[`${tenant.state}_means`]}</p>
      <Fields
        rows={[
          [text.cutover, tenant.cutoverTime && <Time key="cutover" at={tenant.cutoverTime} due />],
          [text.created, <Time key="created" at={tenant.createdAt} />],
          [
            text.keys,
            keys && keys.length > 0 && (
              <span key="keys" className={styles.pair}>
                {keys.map((name, index) => (
                  <bdi key={`${index} ${name}`}>{name}</bdi>
                ))}
              </span>
            ),
          ],
          [text.rateLimit, tenant.rateLimitPerMinute === null ? null : number(tenant.rateLimitPerMinute)],
          [text.bodyLimit, tenant.bodyLimitBytes === null ? null : number(tenant.bodyLimitBytes)],
          [text.embeddingModel, modelText(model?.embedding)],
          [text.summaryModel, modelText(model?.summary)],
        ]}
      />
      <Loaded result={statistics}>
        {({ assets, edges, events, tasks, countMax }) => {
          const shown = (count: number) => atLeast(count, countMax, number);
          return (
            <>
              <section className={styles.section}>
                <h3>{text.events}</h3>
                <Fields
                  rows={[
                    [text.lastDay, number(events.last24Hours)],
                    [text.lastWeek, number(events.last7Days)],
                    [text.newest, events.newest && <Time key="newest" at={events.newest} />],
                    [text.buffered, shown(events.buffered)],
                    [
                      text.deadLetters,
                      <Link key="dead" to="/lineage/dead-letters" search={{ tenant: id }}>
                        {shown(events.dead)}
                      </Link>,
                    ],
                  ]}
                />
              </section>
              <section className={styles.section}>
                <h3>{text.assets}</h3>
                <Fields
                  rows={[
                    ...KINDS.flatMap((kind) => {
                      const count = assets[kind] ?? 0;
                      return count === 0
                        ? []
                        : [
                            [
                              text[kind],
                              <Link key={kind} to="/lineage" search={{ tenant: id, kind }}>
                                {shown(count)}
                              </Link>,
                            ] as const,
                          ];
                    }),
                    [text.edges, shown(edges)],
                  ]}
                />
              </section>
              {tasks.length > 0 && (
                <section className={styles.section}>
                  <h3>{text.tasks}</h3>
                  <Fields
                    rows={tasks.map(({ type, status, count }) => [
                      `${text[type]}, ${text[`task_${status}`]}`,
                      <Link key={type} to="/lineage/tasks" search={{ tenant: id, type, status }}>
                        {shown(count)}
                      </Link>,
                    ])}
                  />
                </section>
              )}
            </>
          );
        }}
      </Loaded>
    </Drawer>
  );
}

function Steps({ tenant }: { tenant: Tenant }) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const { number } = useFormats();
  const why = useWhyNot("lineage:write");
  const { isPending, run } = useAction();
  const [asked, setAsked] = useState<"sync" | "ready">();
  // Ended when the question is closed, or the drawer.
  const wanted = useRef<AbortController>(undefined);
  useEffect(() => () => wanted.current?.abort(), []);
  const close = () => {
    wanted.current?.abort();
    setAsked(undefined);
  };
  const id = String(tenant.id);
  const step = (which: "sync" | "ready") =>
    run(async () => {
      try {
        if (which === "sync") {
          await act(paths.syncStart(id), "POST");
          return text.syncStarted;
        }
        wanted.current = new AbortController();
        const { applied, dead, isReady } = await makeReady(id, wanted.current.signal);
        return (isReady ? text.madeReady : text.notReadyYet)(number(applied), number(dead));
      } finally {
        setAsked(undefined);
        await refresh({ kind: "tenant" });
      }
    });
  return (
    <>
      {tenant.state !== "SYNCING" && (
        <Button why={why} onPress={() => setAsked("sync")}>
          {text.startSync}
        </Button>
      )}
      {tenant.state !== "READY" && (
        <Button kind="primary" why={why} onPress={() => setAsked("ready")}>
          {text.makeReady}
        </Button>
      )}
      <Dialog
        title={asked === "sync" ? text.startSync : text.makeReady}
        isOpen={asked !== undefined}
        onClose={close}
        footer={
          <>
            <Button onPress={close}>{shared.cancel}</Button>
            <Button kind="primary" isPending={isPending} onPress={() => asked && step(asked)}>
              {shared.confirm}
            </Button>
          </>
        }
      >
        <p>{asked === "sync" ? text.startSyncMeans(tenant.code) : text.makeReadyMeans(tenant.code)}</p>
      </Dialog>
    </>
  );
}

/** One call works for 20 s at most, and its state says whether there is more to do. A call that applies nothing would do so again. */
async function makeReady(tenant: string, signal: AbortSignal) {
  let [applied, dead] = [0, 0];
  for (;;) {
    const one = await act<Ready>(paths.ready(tenant), "POST");
    applied += one.applied;
    dead += one.dead;
    const isReady = one.state === "READY";
    if (isReady || signal.aborted || one.applied + one.skipped + one.dead === 0) return { applied, dead, isReady };
  }
}
