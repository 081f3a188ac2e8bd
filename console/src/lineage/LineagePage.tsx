/** The frame of the pages of one tenant: which tenant it is stands on each of them, and all of them are one click away. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { useLive } from "../api/live.ts";
import { usePreference } from "../app/preferences.ts";
import { Select } from "../parts/controls/Select.tsx";
import { Empty, Loaded, Page } from "../parts/page/Page.tsx";
import { useWords } from "../words/words.ts";
import { type Paged, paths, type Tenant } from "./api.ts";
import { lastTenant } from "./last-tenant.ts";
import styles from "./lineage.module.css";
import { lineage } from "./words.ts";

interface LineagePageProps {
  title: ReactNode;
  aside?: ReactNode;
  actions?: ReactNode;
  /** Of the address. */
  tenant: string | undefined;
  onTenant(tenant: string): void;
  children(tenant: string): ReactNode;
}

export function LineagePage({ title, aside, actions, tenant: asked, onTenant, children }: LineagePageProps) {
  const text = useWords(lineage);
  const { tenants, tenant } = useTenant(asked);
  return (
    <Page
      title={title}
      aside={
        <>
          {aside}
          <LineageLinks tenant={tenant} />
        </>
      }
      actions={
        <>
          {actions}
          {tenant !== undefined && tenants.data && (
            <span className={styles.tenant}>
              <Select
                label={text.tenant}
                value={tenant}
                options={tenants.data.items.map(({ id, code, name }) => [
                  String(id),
                  code === name ? code : `${code} · ${name}`,
                ])}
                onChange={onTenant}
              />
            </span>
          )}
        </>
      }
    >
      <Loaded result={tenants}>
        {() => (tenant === undefined ? <Empty>{text.noTenants}</Empty> : children(tenant))}
      </Loaded>
    </Page>
  );
}

/** That of the address, else the last one, else the first that is ready. */
export function useTenant(asked: string | undefined) {
  const tenants = useLive<Paged<Tenant>>(paths.tenants(), [{ kind: "tenant" }]);
  const last = usePreference(lastTenant);
  const items = tenants.data?.items ?? [];
  const kept = items.find(({ id }) => String(id) === last);
  const first = kept ?? items.find(({ state }) => state === "READY") ?? items[0];
  useEffect(() => {
    if (asked !== undefined && asked !== last) lastTenant.set(asked);
  }, [asked, last]);
  return { tenants, tenant: asked ?? (first && String(first.id)) };
}

export function LineageLinks({ tenant }: { tenant?: string | undefined }) {
  const text = useWords(lineage);
  const search = tenant === undefined ? {} : { tenant };
  const exact = { exact: true, includeSearch: false };
  return (
    <nav className={styles.links} aria-label={text.views}>
      <Link to="/lineage" search={search} activeOptions={exact}>
        {text.search}
      </Link>
      <Link to="/lineage/tenants" activeOptions={exact}>
        {text.tenants}
      </Link>
      <Link to="/lineage/dead-letters" search={search} activeOptions={exact}>
        {text.deadLetters}
      </Link>
      <Link to="/lineage/tasks" search={search} activeOptions={exact}>
        {text.tasks}
      </Link>
    </nav>
  );
}
