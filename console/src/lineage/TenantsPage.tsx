/** Tenants and their states: what each has, what waits, and the steps of a full sync. */
import { useNavigate } from "@tanstack/react-router";
import { useLive } from "../api/live.ts";
import { Filter, Select } from "../parts/controls/Select.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { Loaded, Page, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type Paged, paths, type Tenant } from "./api.ts";
import { RoomLinks } from "./LineagePage.tsx";
import styles from "./lineage.module.css";
import { NewTenant } from "./NewTenant.tsx";
import { tenantsRoute } from "./routes.ts";
import { TENANT_STATES } from "./states.ts";
import { TenantDrawer } from "./TenantDrawer.tsx";
import { lineage } from "./words.ts";

const STATES = ["NEW", "SYNCING", "READY"] as const;

export function TenantsPage() {
  const text = useWords(lineage);
  const shared = useWords(common);
  const search = tenantsRoute.useSearch();
  const navigate = useNavigate();
  const set = (change: Partial<typeof search>) =>
    void navigate({ to: "/lineage/tenants", search: { ...search, ...change }, replace: true });
  const { q, state, id } = search;
  const result = useLive<Paged<Tenant>>(paths.tenants({ q, state }), [{ kind: "tenant" }]);
  const open = result.data?.items.find((one) => String(one.id) === id);
  return (
    <Page title={text.tenants} aside={<RoomLinks />} actions={<NewTenant />}>
      <div className={styles.bar}>
        <Filter label={shared.filter} value={q ?? ""} onChange={(next) => set({ q: next || undefined })} />
        <Select
          label={shared.state}
          value={state ?? ""}
          options={[["", shared.all], ...STATES.map((one) => [one, text[one]] as const)]}
          onChange={(next) => set({ state: next || undefined })}
        />
      </div>
      <Split drawer={open && <TenantDrawer key={open.id} tenant={open} onClose={() => set({ id: undefined })} />}>
        <Panel>
          <Loaded result={result}>
            {({ items, total }) => (
              <DataList
                label={text.tenants}
                rows={items}
                total={total}
                keyOf={(one) => String(one.id)}
                live={result.live}
                selected={id}
                onOpen={(one) => set({ id: String(one.id) })}
                empty={q === undefined && state === undefined ? text.noTenants : shared.noMatch}
                columns={[
                  { name: "id", title: "ID", width: "56px", align: "end", cell: (one) => one.id },
                  { name: "code", title: text.code, width: "minmax(80px, 1fr)", cell: ({ code }) => code },
                  { name: "name", title: shared.name, width: "minmax(90px, 2fr)", cell: ({ name }) => name },
                  {
                    name: "state",
                    title: shared.state,
                    width: "110px",
                    cell: (one) => <StateMark state={TENANT_STATES[one.state]} label={text[one.state]} />,
                  },
                  {
                    name: "cutover",
                    title: text.cutover,
                    width: "146px",
                    wideOnly: true,
                    cell: ({ cutoverTime }) => cutoverTime && <Time at={cutoverTime} due />,
                  },
                  {
                    name: "updated",
                    title: text.changed,
                    width: "100px",
                    wideOnly: true,
                    cell: ({ updatedAt }) => <Time at={updatedAt} relative />,
                  },
                ]}
              />
            )}
          </Loaded>
        </Panel>
      </Split>
    </Page>
  );
}
