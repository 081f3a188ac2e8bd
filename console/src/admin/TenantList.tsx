/** The tenants of lineage: their state, their limits, their keys, and what they have. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { withQuery } from "../api/client.ts";
import { onEndOf, pageAfter, useLive, useLiveList } from "../api/live.ts";
import { paths, type Statistics, type Tenant } from "../lineage/api.ts";
import { NewTenant } from "../lineage/NewTenant.tsx";
import { TENANT_STATES } from "../lineage/states.ts";
import { lineage } from "../lineage/words.ts";
import { Filter } from "../parts/controls/Select.tsx";
import { Drawer, Split } from "../parts/dialogs/Drawer.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { wordFor } from "../words/table.ts";
import { useWords } from "../words/words.ts";
import styles from "./admin.module.css";
import { KEYS, type KeysReply, TENANTS, type TenantsReply } from "./api.ts";
import type { AdminSearch } from "./routes.ts";
import { admin } from "./words.ts";

const PAGE = 200;

export function TenantList() {
  const text = useWords(admin);
  const shared = useWords(common);
  const { number } = useFormats();
  const navigate = useNavigate({ from: "/admin" });
  const { q, row } = useSearch({ from: "/admin" });
  const set = (change: { [Name in keyof AdminSearch]: AdminSearch[Name] | undefined }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const result = useLiveList<TenantsReply>((page) => withQuery(TENANTS, { q, page, size: PAGE }), pageAfter, [
    { kind: "tenant" },
  ]);
  const keys = useLive<KeysReply>(KEYS, [{ kind: "key" }]).data?.items.filter(({ revokedAt }) => !revokedAt) ?? [];
  const keysOf = (id: number) => keys.filter(({ tenantId }) => tenantId === id);
  const limit = (value: number | null) => (value === null ? text.serverLimit : number(value));
  return (
    <>
      <div className={styles.bar}>
        <Filter label={text.tenantFilter} value={q ?? ""} onChange={(next) => set({ q: next || undefined })} />
        <NewTenant />
      </div>
      <Loaded result={result}>
        {(pages) => {
          const rows = pages.flatMap(({ items }) => items);
          const opened = rows.find(({ id }) => String(id) === row);
          return (
            <Split
              drawer={
                opened && (
                  <TenantDrawer
                    key={opened.id}
                    tenant={opened}
                    keys={keysOf(opened.id).map(({ name }) => name)}
                    onClose={() => set({ row: undefined })}
                  />
                )
              }
            >
              <Panel>
                <DataList
                  label={text.tenants}
                  rows={rows}
                  total={pages[0]?.total ?? 0}
                  keyOf={({ id }) => String(id)}
                  live={result.live}
                  selected={row}
                  onOpen={({ id }) => set({ row: String(id) })}
                  onEnd={onEndOf(result)}
                  empty={q === undefined ? text.noTenants : shared.noMatch}
                  columns={[
                    {
                      name: "state",
                      title: shared.state,
                      width: "110px",
                      cell: ({ state }) => <StateMark state={TENANT_STATES[state]} label={text[state]} />,
                    },
                    { name: "id", title: text.tenantId, width: "60px", align: "end", cell: ({ id }) => id },
                    { name: "code", title: text.code, width: "minmax(90px, 1fr)", cell: ({ code }) => code },
                    { name: "name", title: shared.name, width: "minmax(100px, 2fr)", cell: ({ name }) => name },
                    {
                      name: "keys",
                      title: text.keysOf,
                      width: "50px",
                      align: "end",
                      wideOnly: true,
                      cell: ({ id }) => keysOf(id).length,
                    },
                    {
                      name: "rate",
                      title: text.eventsPerMinute,
                      width: "130px",
                      align: "end",
                      wideOnly: true,
                      cell: ({ rateLimitPerMinute }) => limit(rateLimitPerMinute),
                    },
                    {
                      name: "bytes",
                      title: text.eventBytes,
                      width: "130px",
                      align: "end",
                      wideOnly: true,
                      cell: ({ bodyLimitBytes }) => limit(bodyLimitBytes),
                    },
                    {
                      name: "changed",
                      title: text.changed,
                      width: "150px",
                      wideOnly: true,
                      cell: ({ updatedAt }) => <Time at={updatedAt} />,
                    },
                  ]}
                />
              </Panel>
            </Split>
          );
        }}
      </Loaded>
    </>
  );
}

function TenantDrawer({ tenant, keys, onClose }: { tenant: Tenant; keys: readonly string[]; onClose(): void }) {
  const text = useWords(admin);
  const names = useWords(lineage);
  const shared = useWords(common);
  const { number } = useFormats();
  const result = useLive<Statistics>(paths.statistics(String(tenant.id)), [{ kind: "tenant", id: String(tenant.id) }]);
  return (
    <Drawer title={`${tenant.code} · ${tenant.name}`} onClose={onClose}>
      <Fields
        rows={[
          [shared.state, <StateMark key="state" state={TENANT_STATES[tenant.state]} label={text[tenant.state]} />],
          [text.cutover, tenant.cutoverTime && <Time key="cutover" at={tenant.cutoverTime} due />],
          [text.created, <Time key="created" at={tenant.createdAt} />],
          [text.keysOf, keys.join(", ")],
        ]}
      />
      <Loaded result={result}>
        {({ assets, edges, events, tasks, countMax }) => {
          const shown = (n: number) => (n >= countMax ? text.atLeast(number(n)) : number(n));
          return (
            <Fields
              rows={[
                [
                  text.assets,
                  Object.entries(assets)
                    .filter(([, n]) => n > 0)
                    .map(([kind, n]) => `${wordFor(names, kind, kind)} ${shown(n)}`)
                    .join(", "),
                ],
                [text.edges, shown(edges)],
                [text.events24, number(events.last24Hours)],
                [text.events7, number(events.last7Days)],
                [text.newestEvent, events.newest && <Time key="newest" at={events.newest} />],
                [text.buffered, events.buffered === 0 ? null : shown(events.buffered)],
                [text.dead, events.dead === 0 ? null : shown(events.dead)],
                [
                  text.tasks,
                  tasks
                    .map(({ type, status, count }) => `${names[type]} ${names[`task_${status}`]} ${shown(count)}`)
                    .join(", "),
                ],
              ]}
            />
          );
        }}
      </Loaded>
    </Drawer>
  );
}
