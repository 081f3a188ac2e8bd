/** The tenant that was looked at last in this browser: pages and the search begin with it. */
import { preference } from "../app/preference.ts";

export const lastTenant = preference<string>("lineage.tenant", "", (stored) =>
  /^\d{1,19}$/.test(stored) ? stored : undefined,
);
