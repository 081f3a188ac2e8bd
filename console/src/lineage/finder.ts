/** Ctrl K search in lineage. A column opens its impact, any other asset its page. With many tenants, the result says which were searched. */
import { call, withQuery } from "../api/client.ts";
import type { Finder, Found } from "../app/found.ts";
import { language } from "../words/words.ts";
import { type Paged, paths, type SearchReply, type Tenant } from "./api.ts";
import { nearPlaceOf } from "./kinds.ts";
import { lastTenant } from "./last-tenant.ts";
import { lineage } from "./words.ts";

/** Results of all tenants together; the menu shows at most 20 of one module. */
const FOUND_MAX = 16;
/** Number of tenants searched: the last viewed one, then the first of the others. */
const TENANTS_MAX = 4;
const KNOWN_MS = 30_000;
let known: { until: number; tenants: Promise<Paged<Tenant>> } | undefined;

export const lineageFinder: Finder = {
  icon: "lineage",
  scope: "lineage:read",
  async find(query, signal) {
    const { tenants, total } = await searched();
    const limit = Math.floor(FOUND_MAX / Math.max(tenants.length, 1));
    const lists = await Promise.all(
      tenants.map((tenant) => findIn(tenant, { q: query, limit }, signal, tenants.length > 1)),
    );
    return tenants.length < total ? [...lists.flat(), elsewhere(query, tenants, total)] : lists.flat();
  },
};

async function findIn(
  { id, code }: Tenant,
  asked: { q: string; limit: number },
  signal: AbortSignal,
  isOneOfMany: boolean,
): Promise<Found[]> {
  const { data } = await call<SearchReply>(paths.search({ tenant: id, ...asked }), { signal });
  const text = lineage[language.get()];
  return data.items.map((item) => ({
    title: item.name,
    detail: [text[item.kind], nearPlaceOf(item), ...(isOneOfMany ? [code] : [])].filter(Boolean).join(" · "),
    to: withQuery(`/lineage/assets/${item.id}`, { tenant: id, tab: item.kind === "COLUMN" ? "impact" : undefined }),
  }));
}

/** The page whose search has the choice of a tenant. */
function elsewhere(q: string, tenants: readonly Tenant[], total: number): Found {
  const text = lineage[language.get()];
  return {
    title: text.elsewhere,
    detail: text.searchedOnly(tenants.map(({ code }) => code).join(", "), String(total)),
    to: withQuery("/lineage", { q }),
  };
}

async function searched(): Promise<{ tenants: readonly Tenant[]; total: number }> {
  if (!known || known.until < Date.now()) {
    const tenants = call<Paged<Tenant>>(paths.tenants()).then(({ data }) => data);
    known = { until: Date.now() + KNOWN_MS, tenants };
    tenants.catch(() => (known = undefined));
  }
  const { items, total } = await known.tenants;
  const last = lastTenant.get();
  const tenants = items
    .toSorted((one, other) => Number(String(other.id) === last) - Number(String(one.id) === last))
    .slice(0, TENANTS_MAX);
  return { tenants, total };
}
