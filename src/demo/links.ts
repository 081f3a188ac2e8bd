/** Links into the console, signed in: each has a code of its own, which is valid once. */
import type { Api } from "./api.ts";
import { OWN_TENANT } from "./lineage.ts";
import { REPORT } from "./lineage-events.ts";
import type { Items } from "./readings.ts";

export interface Link {
  name: string;
  url: string;
}

export async function createLinks(api: Api, url: string, firstRunId: string): Promise<Link[]> {
  const pages: [name: string, path: string][] = [
    ["Overview", "/"],
    ["A source that was harvested", "/harvest/crossref"],
    ["A run that was retried", `/chains/runs/${firstRunId}`],
    ["Arrivals", "/arrivals"],
    ["Webhook deliveries", "/arrivals/deliveries"],
    ["Where a report comes from", await lineageOfReport(api)],
    ["Tracked files", "/tracking"],
  ];
  const links: Link[] = [];
  for (const [name, path] of pages) {
    const { code } = await api.post<{ code: string }>("api/v1/session/links");
    links.push({ name, url: `${url}/login?to=${encodeURIComponent(path)}#${code}` });
  }
  return links;
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
