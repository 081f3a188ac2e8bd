/** Tenants with their states and limits, for lineage and for the administration, which knows the keys of each. */
import type { TenantsReply } from "../../../src/lineage/tenants/replies.ts";
import { onEndOf, pageAfter, useLiveList } from "../api/live.ts";
import { Filter, Select } from "../parts/controls/Select.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { type Column, DataList } from "../parts/page/DataList.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, type Tenant } from "./api.ts";
import styles from "./lineage.module.css";
import { NewTenant } from "./NewTenant.tsx";
import { TENANT_STATES } from "./states.ts";
import { TenantDrawer } from "./TenantDrawer.tsx";
import { lineage } from "./words.ts";

const STATES = ["NEW", "SYNCING", "READY"] as const;
const PAGE = 1_000;

export interface TenantSearch {
  q?: string | undefined;
  state?: string | undefined;
  /** Of the tenant that is open. */
  id?: string | undefined;
}

interface TenantListProps {
  search: TenantSearch;
  onSearch(search: TenantSearch): void;
  /** The names of the keys that are bound to a tenant, for who may see them. */
  keysOf?(tenant: number): readonly string[];
}

export function TenantList({ search, onSearch, keysOf }: TenantListProps) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const { number } = useFormats();
  const { q, state, id } = search;
  const isFiltered = q !== undefined || state !== undefined;
  const set = (change: TenantSearch) => onSearch({ ...search, ...change });
  const result = useLiveList<TenantsReply>((page) => paths.tenants({ q, state, page, size: PAGE }), pageAfter, [
    { kind: "tenant" },
  ]);
  const limit = (value: number | null) => (value === null ? text.serverLimit : number(value));
  const keyCount: Column<Tenant> = {
    name: "keys",
    title: text.keys,
    width: "50px",
    align: "end",
    wideOnly: true,
    cell: (one) => keysOf?.(one.id).length,
  };
  return (
    <>
      <div className={styles.bar}>
        <Filter label={text.tenantFilter} value={q ?? ""} onChange={(next) => set({ q: next || undefined })} />
        <Select
          label={shared.state}
          value={state ?? ""}
          options={[["", shared.all], ...STATES.map((one) => [one, text[one]] as const)]}
          onChange={(next) => set({ state: next || undefined })}
        />
        <span className={styles.end}>
          <NewTenant />
        </span>
      </div>
      <Loaded result={result}>
        {(pages) => {
          const rows = pages.flatMap(({ items }) => items);
          const opened = rows.find((one) => String(one.id) === id);
          return (
            <Split
              drawer={
                opened && (
                  <TenantDrawer
                    key={opened.id}
                    tenant={opened}
                    keys={keysOf?.(opened.id)}
                    onClose={() => set({ id: undefined })}
                  />
                )
              }
            >
              <Panel>
                <DataList
                  label={text.tenants}
                  rows={rows}
                  total={pages[0]?.total ?? 0}
                  keyOf={(one) => String(one.id)}
                  live={result.live}
                  selected={id}
                  onOpen={(one) => set({ id: String(one.id) })}
                  onEnd={onEndOf(result)}
                  empty={text.noTenants}
                  {...(isFiltered && { onClear: () => set({ q: undefined, state: undefined }) })}
                  columns={[
                    {
                      name: "state",
                      title: shared.state,
                      width: "92px",
                      cell: (one) => <StateMark state={TENANT_STATES[one.state]} label={text[one.state]} />,
                    },
                    { name: "id", title: "ID", width: "44px", align: "end", cell: (one) => one.id },
                    {
                      name: "code",
                      title: text.code,
                      width: "minmax(60px, 1fr)",
                      cell: ({ code }) => <bdi title={code}>{code}</bdi>,
                    },
                    {
                      name: "name",
                      title: shared.name,
                      width: "minmax(60px, 2fr)",
                      cell: ({ name }) => <bdi title={name}>{name}</bdi>,
                    },
                    ...(keysOf ? [keyCount] : []),
                    {
                      name: "rate",
                      title: text.rateLimit,
                      width: "120px",
                      align: "end",
                      wideOnly: true,
                      cell: ({ rateLimitPerMinute }) => limit(rateLimitPerMinute),
                    },
                    {
                      name: "bytes",
                      title: text.bodyLimit,
                      width: "150px",
                      align: "end",
                      wideOnly: true,
                      cell: ({ bodyLimitBytes }) => limit(bodyLimitBytes),
                    },
                    {
                      name: "changed",
                      title: text.changed,
                      width: "110px",
                      wideOnly: true,
                      cell: ({ updatedAt }) => <Time at={updatedAt} relative />,
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
