/** The checks of the scenario: expected results beside those that the API returns. */
import type { Api } from "./api.ts";
import * as read from "./readings.ts";
import type { Observed } from "./scenario.ts";
import type { Subscribers } from "./subscribers.ts";

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

export async function checkScenario(api: Api, observed: Observed, subscribers: Subscribers): Promise<Check[]> {
  const { PATHS } = read;
  const finance = await read.deliveriesTo(api, subscribers.callbackUrl("finance"));
  const growth = await read.deliveriesTo(api, subscribers.callbackUrl("growth"));
  const deliveries = [...finance, ...growth];
  const verified = new Set(subscribers.received().map(({ id }) => id));

  const rows: [what: string, found: string, expected: string, path: string][] = [
    ["files through all stages", await read.shardsDone(api), "5 of 5 shards", PATHS.summary],
    ["arrivals of each table", await read.arrivalCounts(api), "ORDERS 2, REGIONS 1, VISITS 1", PATHS.arrivals],
    ["SALES waited for", observed.waitedFor.SALES, "REGIONS", PATHS.why("SALES")],
    ["TRAFFIC waited for", observed.waitedFor.TRAFFIC, "REGIONS", PATHS.why("TRAFFIC")],
    ["runs of the chain orders", await read.runStatuses(api, observed.chainId), "SUCCESS, SUCCESS", PATHS.runs],
    [
      "attempts of its node fetch",
      await read.attempts(api, observed.firstRunId, "fetch"),
      "1 FAILED, 2 SUCCESS",
      PATHS.attempts("{runId}", "fetch"),
    ],
    ["generations of SALES", await read.generations(api, "SALES"), "1 SUCCESS, 2 SUCCESS", PATHS.taskLogs],
    ["generations of TRAFFIC", await read.generations(api, "TRAFFIC"), "1 SUCCESS", PATHS.taskLogs],
    ["KD1001 Revenue, first run", observed.firstRevenue, "America 80, Europe 180", PATHS.data],
    ["KD1001 Revenue, rerun", await read.values(api, "KD1001"), "America 180, Europe 180", PATHS.data],
    ["KD1002 Visits", await read.values(api, "KD1002"), "America 4, Europe 6", PATHS.data],
    ["KC2001 Revenue per visit", await read.values(api, "KC2001"), "America 45, Europe 30", PATHS.data],
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
  return rows.map(([what, found, expected, path]) => ({
    what,
    found,
    expected,
    source: path === "" ? "the subscriber itself" : `GET /${path}`,
  }));
}

function deliveredAndVerified(deliveries: readonly read.Delivery[], verified: ReadonlySet<string>): string {
  const delivered = deliveries.filter(({ status }) => status === "DELIVERED");
  return `${delivered.length} of ${deliveries.length}, ${delivered.filter(({ id }) => verified.has(id)).length} verified`;
}
