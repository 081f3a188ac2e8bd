/** What Ctrl K finds in lineage. A column leads to what breaks if it goes, anything else to its page. */
import { call, withQuery } from "../api/client.ts";
import type { Finder, Found } from "../app/found.ts";
import { language } from "../words/words.ts";
import { type Paged, paths, type SearchReply, type Tenant } from "./api.ts";
import { nearPlaceOf } from "./kinds.ts";
import { lastTenant } from "./last-tenant.ts";
import { lineage } from "./words.ts";

const FOUND_MAX = 8;
/** Tenants that are searched: the one that was looked at last, and the first others. */
const TENANTS_MAX = 4;
const KNOWN_MS = 30_000;
let known: { until: number; tenants: Promise<readonly Tenant[]> } | undefined;

export const lineageFinder: Finder = {
  icon: "lineage",
  scope: "lineage:read",
  async find(query, signal) {
    const tenants = await searched();
    const lists = await Promise.all(tenants.map((tenant) => findIn(tenant, query, signal, tenants.length > 1)));
    return lists.flat();
  },
};

async function findIn({ id, code }: Tenant, q: string, signal: AbortSignal, isOneOfMany: boolean): Promise<Found[]> {
  const { data } = await call<SearchReply>(paths.search({ tenant: id, q, limit: FOUND_MAX }), { signal });
  const text = lineage[language.get()];
  return data.items.map((item) => ({
    title: item.name,
    detail: [text[item.kind], nearPlaceOf(item), ...(isOneOfMany ? [code] : [])].filter(Boolean).join(" · "),
    to: withQuery(`/lineage/assets/${item.id}`, { tenant: id, tab: item.kind === "COLUMN" ? "impact" : undefined }),
  }));
}

async function searched(): Promise<readonly Tenant[]> {
  if (!known || known.until < Date.now()) {
    const tenants = call<Paged<Tenant>>(paths.tenants()).then(({ data }) => data.items);
    known = { until: Date.now() + KNOWN_MS, tenants };
    tenants.catch(() => (known = undefined));
  }
  const tenants = await known.tenants;
  const last = lastTenant.get();
  return tenants
    .toSorted((one, other) => Number(String(other.id) === last) - Number(String(one.id) === last))
    .slice(0, TENANTS_MAX);
}
