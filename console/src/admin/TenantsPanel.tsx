/** The tenants, each with its keys. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useLive } from "../api/live.ts";
import { isInPlace } from "../app/search-values.ts";
import { TenantList } from "../lineage/TenantList.tsx";
import { KEYS, type KeysReply } from "./api.ts";

export function TenantsPanel() {
  const navigate = useNavigate({ from: "/admin" });
  const search = useSearch({ from: "/admin" });
  const { q, state, row } = search;
  const keys = useLive<KeysReply>(KEYS, [{ kind: "key" }]).data?.items.filter(({ revokedAt }) => !revokedAt) ?? [];
  return (
    <TenantList
      search={{ q, state, id: row }}
      onSearch={({ id, ...filters }) => {
        const change = { ...filters, row: id };
        void navigate({ search: (before) => ({ ...before, ...change }), replace: isInPlace(search, change, "row") });
      }}
      keysOf={(id) => keys.filter(({ tenantId }) => tenantId === id).map(({ name }) => name)}
    />
  );
}
