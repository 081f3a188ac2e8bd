/** The tenants, each with its keys. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useLive } from "../api/live.ts";
import { TenantList } from "../lineage/TenantList.tsx";
import { KEYS, type KeysReply } from "./api.ts";

export function TenantsPanel() {
  const navigate = useNavigate({ from: "/admin" });
  const { q, state, row } = useSearch({ from: "/admin" });
  const keys = useLive<KeysReply>(KEYS, [{ kind: "key" }]).data?.items.filter(({ revokedAt }) => !revokedAt) ?? [];
  return (
    <TenantList
      search={{ q, state, id: row }}
      onSearch={({ id, ...filters }) =>
        void navigate({
          search: (before) => ({ ...before, ...filters, row: id }),
          replace: row !== undefined || id === undefined,
        })
      }
      keysOf={(id) => keys.filter(({ tenantId }) => tenantId === id).map(({ name }) => name)}
    />
  );
}
