/** The checks of the scenario: expected results beside those that the API returns. */
import { newestOf, opTimeOf } from "./days.ts";
import { arrivalsOfSources, harvested, runsOfDays, totalOfDays, valueCount } from "./harvest-readings.ts";
import { columnsAbove, LINEAGE_PATHS, sourcesAbove, sparkStates, tenantStates } from "./lineage.ts";
import { REPORT } from "./lineage-events.ts";
import * as read from "./readings.ts";
import type { Observed, ScenarioContext } from "./scenario.ts";
import { SOURCE_NAMES, SOURCES } from "./sources.ts";

export interface Check {
  what: string;
  found: string;
  expected: string;
  /** The call that returned `found`. */
  source: string;
}

export function holds({ found, expected }: Check): boolean {
  return found === expected;
}

type Row = [what: string, found: string, expected: string, path: string];

export async function checkScenario(context: ScenarioContext, observed: Observed): Promise<Check[]> {
  const rows = [
    ...(await harvestRows(context, observed)),
    ...(await shopRows(context, observed)),
    ...(await lineageRows(context)),
    ...(await personRows(context, observed)),
  ];
  return rows.map(([what, found, expected, path]) => ({
    what,
    found,
    expected,
    source: path === "" ? "the subscriber itself" : `GET /${path}`,
  }));
}

async function harvestRows({ api, sources, days, subscribers }: ScenarioContext, { plans }: Observed): Promise<Row[]> {
  const { PATHS } = read;
  const newest = newestOf(days.scenario);
  const expected = (source: (typeof SOURCE_NAMES)[number], window: { from?: string }) =>
    sources.get(source).records({ ...window, to: days.later[0] }).length;
  const rows: Row[] = [];
  for (const source of SOURCE_NAMES) {
    const count = days.scenario.length;
    const wanted = `${expected(source, {})} records, ${count} days landed, 0 gaps`;
    rows.push([`harvested from ${source}`, await harvested(api, plans[source]), wanted, PATHS.plan("{planId}")]);
  }
  const ofNewest = SOURCE_NAMES.map((source) => `${SOURCES[source].label} ${expected(source, { from: newest })}`);
  const all = SOURCE_NAMES.reduce((sum, source) => sum + expected(source, {}), 0);
  const research = await read.deliveriesTo(api, subscribers.callbackUrl("research"));
  const verified = new Set(subscribers.received().map(({ id }) => id));
  return [
    ...rows,
    ["arrivals of what landed", await arrivalsOfSources(api), "arxiv 7, crossref 7, pubmed 7", PATHS.arrivals],
    ["runs of WORKS", await runsOfDays(api, "WORKS"), "7 SUCCESS, 1 per day", PATHS.taskLogs],
    [
      "KD1003 Works, newest day",
      await read.values(api, "KD1003", opTimeOf(newest)),
      read.sortedList(ofNewest),
      PATHS.data,
    ],
    ["KD1003 Works, all days", await totalOfDays(api, "KD1003"), `${all} in 7 days`, PATHS.data],
    ["delivered to research", deliveredAndVerified(research, verified), "7 of 7, 7 verified", PATHS.deliveries],
  ];
}

async function lineageRows({ api, sources }: ScenarioContext): Promise<Row[]> {
  const { graph, columns, tenants, events } = LINEAGE_PATHS;
  const all = "arxiv, crossref, pubmed";
  return [
    ["events of Spark", await sparkStates(api), "8 APPLIED", events],
    ["APIs upstream of KPI KD1003", await sourcesAbove(api, sources, "KD1003"), all, graph],
    ["APIs upstream of the report", await sourcesAbove(api, sources, REPORT), all, graph],
    [
      "column lineage up to the API",
      await columnsAbove(api, sources, "crossref"),
      "DOI -> doi -> doi -> doi -> works",
      columns,
    ],
    ["tenants of lineage", await tenantStates(api), "acme READY, globex NEW, millrace READY", tenants],
  ];
}

/** The open problems are part of the scenario, so they are checked too. */
async function personRows({ api, days, subscribers }: ScenarioContext, { chains }: Observed): Promise<Row[]> {
  const { PATHS } = read;
  const audit = await read.deliveriesTo(api, subscribers.callbackUrl("audit"));
  const waiting = audit.filter(({ status }) => status === "PENDING" || status === "SENDING");
  const missing = (await read.why(api, "APPROVED", opTimeOf(newestOf(days.scenario)))).missing;
  return [
    ["APPROVED waits for", missing, "SIGN_OFF", PATHS.why("APPROVED")],
    ["KD1004 Approved works", await valueCount(api, "KD1004"), "6 days", PATHS.data],
    ["runs of the chain export", await read.runStatuses(api, chains.export), "FAILED", PATHS.runs],
    ["pending deliveries to audit", `${waiting.length} of ${audit.length}`, "7 of 7", PATHS.deliveries],
  ];
}

async function shopRows({ api, days, subscribers }: ScenarioContext, observed: Observed): Promise<Row[]> {
  const opTime = opTimeOf(newestOf(days.scenario));
  const { PATHS } = read;
  const finance = await read.deliveriesTo(api, subscribers.callbackUrl("finance"));
  const growth = await read.deliveriesTo(api, subscribers.callbackUrl("growth"));
  const deliveries = [...finance, ...growth];
  const verified = new Set(subscribers.received().map(({ id }) => id));

  const arrivals = await read.arrivalCounts(api, opTime, ["ORDERS", "REGIONS", "VISITS"]);
  return [
    ["files through all stages", await read.shardsDone(api), "5 of 5 shards", PATHS.summary],
    ["arrivals of each table", arrivals, "ORDERS 2, REGIONS 1, VISITS 1", PATHS.arrivals],
    ["SALES waited for", observed.waitedFor.SALES, "REGIONS", PATHS.why("SALES")],
    ["TRAFFIC waited for", observed.waitedFor.TRAFFIC, "REGIONS", PATHS.why("TRAFFIC")],
    ["runs of the chain orders", await read.runStatuses(api, observed.chains.orders), "SUCCESS, SUCCESS", PATHS.runs],
    [
      "attempts of its node fetch",
      await read.attempts(api, observed.firstRunId, "fetch"),
      "1 FAILED, 2 SUCCESS",
      PATHS.attempts("{runId}", "fetch"),
    ],
    ["generations of SALES", await read.generations(api, "SALES", opTime), "1 SUCCESS, 2 SUCCESS", PATHS.taskLogs],
    ["generations of TRAFFIC", await read.generations(api, "TRAFFIC", opTime), "1 SUCCESS", PATHS.taskLogs],
    ["KD1001 Revenue, first run", observed.firstRevenue, "America 80, Europe 180", PATHS.data],
    ["KD1001 Revenue, rerun", await read.values(api, "KD1001", opTime), "America 180, Europe 180", PATHS.data],
    ["KD1002 Visits", await read.values(api, "KD1002", opTime), "America 4, Europe 6", PATHS.data],
    ["KC2001 Revenue per visit", await read.values(api, "KC2001", opTime), "America 45, Europe 30", PATHS.data],
    [
      "finance was notified of",
      await read.contentOf(api, finance),
      "SALES 1, SALES 2 (rerun)",
      `${PATHS.deliveries}/{id}`,
    ],
    [
      "growth was notified of",
      await read.contentOf(api, growth),
      "SALES 1, SALES 2 (rerun), TRAFFIC 1",
      `${PATHS.deliveries}/{id}`,
    ],
    [
      "delivered, signatures verified",
      deliveredAndVerified(deliveries, verified),
      "5 of 5, 5 verified",
      PATHS.deliveries,
    ],
    ["status of a forged delivery", observed.forgeryStatus, "401", ""],
  ];
}

function deliveredAndVerified(deliveries: readonly read.Delivery[], verified: ReadonlySet<string>): string {
  const delivered = deliveries.filter(({ status }) => status === "DELIVERED");
  return `${delivered.length} of ${deliveries.length}, ${delivered.filter(({ id }) => verified.has(id)).length} verified`;
}
