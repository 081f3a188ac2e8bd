/** Tenants and their states: what each has, what waits, and the steps of a full sync. */
import { useNavigate } from "@tanstack/react-router";
import { isInPlace } from "../app/search-values.ts";
import { Page } from "../parts/page/Page.tsx";
import { useWords } from "../words/words.ts";
import { LineageLinks } from "./LineagePage.tsx";
import { tenantsRoute } from "./routes.ts";
import { TenantList } from "./TenantList.tsx";
import { lineage } from "./words.ts";

export function TenantsPage() {
  const text = useWords(lineage);
  const search = tenantsRoute.useSearch();
  const navigate = useNavigate();
  return (
    <Page title={text.tenants} aside={<LineageLinks />}>
      <TenantList
        search={search}
        onSearch={(next) =>
          void navigate({ to: "/lineage/tenants", search: next, replace: isInPlace(search, next, "id") })
        }
      />
    </Page>
  );
}
