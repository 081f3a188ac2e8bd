/** A link that signs in to the console, and the pages that are worth a look. */
import type { Api } from "./api.ts";
import { OWN_TENANT } from "./lineage.ts";
import { REPORT } from "./lineage-events.ts";
import type { Items } from "./readings.ts";

export interface Links {
  /** Valid once; leads to the overview. */
  signIn: string;
  pages: readonly Page[];
}

interface Page {
  name: string;
  path: string;
}

/** Of the last hour: the whole demo is one bar of a day. */
const OVERVIEW = "/?range=hour";

/** Without the run if the scenario was cut short. */
export async function createLinks(api: Api, url: string, firstRunId: string | undefined): Promise<Links> {
  const { code } = await api.post<{ code: string }>("api/v1/session/links");
  const pages = [
    { name: "Overview", path: OVERVIEW },
    { name: "A source", path: "/harvest/crossref" },
    ...(firstRunId === undefined ? [] : [{ name: "A retried run", path: `/chains/runs/${firstRunId}` }]),
    { name: "Arrivals", path: "/arrivals" },
    { name: "Webhooks", path: "/arrivals/deliveries" },
    { name: "A report's data", path: await lineageOfReport(api) },
    { name: "Tracked files", path: "/tracking" },
  ];
  return { signIn: `${url}/login?to=${OVERVIEW}#${code}`, pages };
}

async function lineageOfReport(api: Api): Promise<string> {
  const tenant = OWN_TENANT.id;
  const { items } = await api.get<Items<{ id: string }>>("api/v1/lineage/assets", {
    tenant,
    name: REPORT,
    kind: "TABLE",
  });
  const [report] = items;
  return report ? `/lineage/assets/${report.id}?tenant=${tenant}&tab=graph&direction=up&depth=10` : "/lineage";
}
