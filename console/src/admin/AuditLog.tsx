/** Who did what, newest first. */
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { withQuery } from "../api/client.ts";
import { serverClock } from "../api/clock.ts";
import { onEndOf, useLiveList } from "../api/live.ts";
import { isInPlace } from "../app/search-values.ts";
import { Button } from "../parts/controls/Button.tsx";
import { GoTo } from "../parts/controls/GoTo.tsx";
import { Filter, Select } from "../parts/controls/Select.tsx";
import { Drawer, Split } from "../parts/dialogs/Drawer.tsx";
import { type Change, ChangeList } from "../parts/page/ChangeList.tsx";
import { CodeText } from "../parts/page/CodeText.tsx";
import { type Column, DataList } from "../parts/page/DataList.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import styles from "./admin.module.css";
import { AUDIT, type AuditItem, type AuditPage } from "./api.ts";
import { type AdminSearch, SINCE } from "./routes.ts";
import { targetHref } from "./targets.ts";
import { admin } from "./words.ts";

const PAGE_ROWS = 200;
/** Any request may write to it, so there is no hint of it. */
const PACE = { atLeastEveryMs: 5_000 };
const DAY_MS = 86_400_000;
const DAYS = { day: 1, week: 7, month: 31 } as const;

const NO_FILTERS = { who: undefined, action: undefined, what: undefined, since: undefined };

export function AuditLog() {
  const text = useWords(admin);
  const shared = useWords(common);
  const navigate = useNavigate({ from: "/admin" });
  const search = useSearch({ from: "/admin" });
  const { who, action, what, since, row } = search;
  // Computed once: a moving start time would be a new list every second.
  const from = useMemo(
    () => (since === undefined ? undefined : new Date(serverClock.now() - DAYS[since] * DAY_MS).toISOString()),
    [since],
  );
  const list = useLiveList<AuditPage>(
    (before) => withQuery(AUDIT, { who, action, what, from, limit: PAGE_ROWS, before }),
    ({ next }) => next,
    [],
    PACE,
  );
  const set = (change: Partial<AdminSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: isInPlace(search, change, "row") });
  const filter = (change: Partial<AdminSearch>) => set({ ...change, row: undefined });
  const columns: readonly Column<AuditItem>[] = [
    { name: "at", title: shared.time, width: "146px", cell: ({ at }) => <Time at={at} /> },
    {
      name: "actor",
      title: text.who,
      width: "minmax(60px, 1fr)",
      cell: ({ actor }) => (
        <Link
          from="/admin"
          to="/admin"
          search={(before) => ({ ...before, who: actor, row: undefined })}
          title={text.onlyBy(actor)}
        >
          <bdi>{actor}</bdi>
        </Link>
      ),
    },
    { name: "action", title: text.what, width: "minmax(70px, 1fr)", cell: (one) => one.action },
    {
      name: "target",
      title: text.target,
      width: "minmax(160px, 2fr)",
      wideOnly: true,
      cell: (item) => <Target item={item} />,
    },
    { name: "address", title: text.from, width: "130px", wideOnly: true, cell: ({ address }) => address },
  ];
  const isFiltered = [who, action, what, since].some((one) => one !== undefined);
  return (
    <>
      <AuditFilters search={search} actions={list.data?.[0]?.actions ?? []} set={filter} />
      <Loaded result={list}>
        {(pages) => {
          const rows = pages.flatMap(({ items }) => items);
          const opened = rows.find(({ id }) => id === row);
          return (
            <Split drawer={opened && <AuditDrawer item={opened} onClose={() => set({ row: undefined })} />}>
              <Panel>
                <DataList
                  label={text.audit}
                  rows={rows}
                  keyOf={({ id }) => id}
                  live={list.live}
                  selected={row}
                  onOpen={({ id }) => set({ row: id })}
                  onEnd={onEndOf(list)}
                  {...(isFiltered && { onClear: () => filter(NO_FILTERS) })}
                  columns={columns}
                />
              </Panel>
            </Split>
          );
        }}
      </Loaded>
    </>
  );
}

interface FiltersProps {
  search: AdminSearch;
  /** That the log has. */
  actions: readonly string[];
  set(change: Partial<AdminSearch>): void;
}

function AuditFilters({ search: { who, action, what, since }, actions, set }: FiltersProps) {
  const text = useWords(admin);
  return (
    <div className={styles.bar}>
      <Button kind={who === "me" ? "primary" : "plain"} onPress={() => set({ who: who === "me" ? undefined : "me" })}>
        {text.onlyMe}
      </Button>
      <Filter
        label={text.whoFilter}
        value={who === "me" ? "" : (who ?? "")}
        onChange={(next) => set({ who: next || undefined })}
      />
      <Select
        label={text.what}
        value={action ?? ""}
        options={[["", text.anyAction], ...actions.map((one) => [one, one] as const)]}
        onChange={(next) => set({ action: next || undefined })}
      />
      <Filter label={text.targetFilter} value={what ?? ""} onChange={(next) => set({ what: next || undefined })} />
      <Select
        label={text.since}
        value={since ?? ""}
        options={[["", text.everything], ...SINCE.map((one) => [one, text[one]] as const)]}
        onChange={(next) => set({ since: next === "" ? undefined : next })}
      />
    </div>
  );
}

/** Of a thing whose id says nothing, such as a key, the name that it had. */
function Target({ item }: { item: AuditItem }) {
  const { name } = item.details as { name?: unknown };
  return (
    <>
      <GoTo href={targetHref(item)}>
        <span title={item.target}>{item.target}</span>
      </GoTo>
      {typeof name === "string" && (
        <>
          {" "}
          <bdi className={styles.soft}>{name}</bdi>
        </>
      )}
    </>
  );
}

function AuditDrawer({ item, onClose }: { item: AuditItem; onClose(): void }) {
  const text = useWords(admin);
  const { number } = useFormats();
  const { changes, moreChanges, ...details } = item.details as { changes?: readonly Change[]; moreChanges?: number };
  const shared = useWords(common);
  return (
    <Drawer title={`${item.action} ${item.target}`} onClose={onClose}>
      <Fields
        rows={[
          [shared.time, <Time key="at" at={item.at} />],
          [text.who, item.actor],
          [text.what, item.action],
          [text.target, <Target key="target" item={item} />],
          [text.from, item.address],
          [text.request, <code key="request">{item.requestId}</code>],
        ]}
      />
      {changes && (
        <section className={styles.changes}>
          <h3>{text.changes}</h3>
          {changes.length === 0 ? <p className={styles.soft}>{text.noChanges}</p> : <ChangeList changes={changes} />}
          {moreChanges !== undefined && <p className={styles.soft}>{text.moreChanges(number(moreChanges))}</p>}
        </section>
      )}
      <CodeText>{JSON.stringify(details, null, 2)}</CodeText>
    </Drawer>
  );
}
