/** Every page and tab of the console with data: it shows them without a serious fault of accessibility, light and dark, and fits a phone. */
import { beforeAll, describe, expect, test } from "vitest";
import { useScripted } from "../../src/harvest/run/scripted.fixture.ts";
import { useDatabase } from "../database.ts";
import { DESKTOP, faultsInBothThemes, hasBrowser, PHONE, useConsole } from "./browser.ts";
import { EVERY_PAGE_ENV, type EveryPage, fillEveryPage, OP_TIME, TENANT } from "./every-page.ts";

const database = useDatabase();
const harvests = useScripted(database, EVERY_PAGE_ENV);

/** The address of a page, and something that it shows once its data have come. */
type PageOf = (made: EveryPage) => [path: string, shown: string | RegExp];

const PAGES: Record<string, PageOf> = {
  "the overview": ({ chainName }) => ["/", chainName],
  "the overview of an hour": ({ source }) => ["/?range=hour", source],
  "the sources": ({ source }) => ["/harvest", source],
  "a new source": () => ["/harvest?tab=new", "Apply"],
  "the activity of a source": ({ source }) => [`/harvest/${source}`, "Where the time goes"],
  "the plans of a source": ({ source }) => [`/harvest/${source}?tab=plans`, /of 3 slices are not complete/],
  "the cursors of a source": ({ source }) => [`/harvest/${source}?tab=cursors`, "History of items"],
  "a gap of a source": ({ source, sliceId }) => [`/harvest/${source}?tab=cursors&slice=${sliceId}`, "Accept the gap"],
  "the gates of a source": ({ source }) => [`/harvest/${source}?tab=gates`, "the declared limit is in force"],
  "the definition of a source": ({ source }) => [`/harvest/${source}?tab=definition`, "itemsPath"],
  "a new plan": ({ source }) => [`/harvest/${source}?tab=plan&from=2026-08-01&to=2026-08-04`, /It would make 3 slices/],
  "a plan": ({ planId }) => [`/harvest/plans/${planId}`, "2 of 3 slices"],
  "a run of a slice": ({ planId, sliceId, sliceRunId }) => [
    `/harvest/plans/${planId}?slice=${sliceId}&run=${sliceRunId}`,
    "It has committed no page.",
  ],
  "the stages of tracking": () => ["/tracking", "shard-worker"],
  "the files of tracking": ({ filename }) => ["/tracking?tab=files", filename],
  "what is stuck in tracking": ({ filename }) => ["/tracking?tab=stuck", filename],
  "a shard that is stuck": ({ filename }) => [`/tracking?tab=stuck&file=${filename}&shard=1`, "Retry"],
  "a file": ({ filename }) => [`/tracking/files/${filename}`, filename],
  "the chains": ({ chainName }) => ["/chains", chainName],
  "the runs of all chains": ({ chainName }) => ["/chains/runs", chainName],
  "a new chain": () => ["/chains/new", "No problems."],
  "the runs of a chain": ({ chainId }) => [`/chains/${chainId}`, OP_TIME],
  "the grid of a chain": ({ chainId }) => [`/chains/${chainId}?tab=grid`, "load_orders_of_all_shops"],
  "the graph of a chain": ({ chainId }) => [`/chains/${chainId}?tab=graph`, "load_orders_of_all_shops"],
  "the definition of a chain": ({ chainId }) => [`/chains/${chainId}?tab=definition`, "load_orders_of_all_shops"],
  "the versions of a chain": ({ chainId }) => [`/chains/${chainId}?tab=versions`, /price_in_cents/],
  "the schedules of a chain": ({ chainId }) => [`/chains/${chainId}?tab=schedules`, "nightly"],
  "the start of a chain": ({ chainId }) => [`/chains/${chainId}?start=true`, "Start"],
  "a run with its failed node": ({ runId }) => [`/chains/runs/${runId}`, /price_in_cents/],
  "the Gantt chart of a run": ({ runId }) => [`/chains/runs/${runId}?tab=gantt`, "load_orders_of_all_shops"],
  "the grid of a run": ({ runId }) => [`/chains/runs/${runId}?tab=grid`, "load_orders_of_all_shops"],
  "the nodes of a run": ({ runId }) => [`/chains/runs/${runId}?tab=table`, "load_orders_of_all_shops"],
  "the log of a run": ({ runId }) => [`/chains/runs/${runId}?tab=log&node=load_orders_of_all_shops`, "line 40"],
  "the comparison of two runs": ({ runId, goodRunId }) => [
    `/chains/runs/${runId}?tab=compare&with=${goodRunId}`,
    "load_orders_of_all_shops",
  ],
  "tables by opTime": ({ table }) => [`/arrivals?from=20260301&to=${OP_TIME}`, table],
  "models by opTime": ({ modelId }) => [`/arrivals?tab=models&from=20260301&to=${OP_TIME}`, modelId],
  "why a model waits": ({ waitingModelId: id }) => [
    `/arrivals?tab=models&from=20260301&to=${OP_TIME}&row=${id}&at=${OP_TIME}`,
    `It waits for a table: COSTS ${OP_TIME}.`,
  ],
  "a table that has arrived": ({ table }) => [
    `/arrivals?from=20260301&to=${OP_TIME}&row=${table}&at=${OP_TIME}`,
    "key MILLRACE_ADMIN_KEY",
  ],
  "a model": ({ modelId }) => [`/arrivals/models/${modelId}`, "Unpublish"],
  "a KPI": ({ kpiId }) => [`/arrivals/kpis/${kpiId}`, OP_TIME],
  "the deliveries": ({ modelId }) => ["/arrivals/deliveries", modelId],
  "a failed delivery": ({ deliveryId }) => [`/arrivals/deliveries?id=${deliveryId}`, "Send again"],
  "the subscriptions": () => ["/arrivals/deliveries?tab=subscriptions", "/away/webhooks"],
  "a search in lineage": () => [`/lineage?tenant=${TENANT}&q=revenue`, "revenue_by_shop_and_region"],
  "an asset": ({ assetId }) => [`/lineage/assets/${assetId}?tenant=${TENANT}`, "total"],
  "the graph of an asset": ({ assetId }) => [
    `/lineage/assets/${assetId}?tenant=${TENANT}&tab=graph`,
    "refresh_revenue_by_shop_and_region",
  ],
  "the graph of a column": ({ columnId }) => [
    `/lineage/assets/${columnId}?tenant=${TENANT}&tab=graph&level=columns`,
    "price",
  ],
  "the impact of an asset": ({ from }) => [
    `/lineage/assets/${from}?tenant=${TENANT}&tab=impact`,
    "revenue_by_shop_and_region",
  ],
  "the paths between two assets": ({ assetId, from }) => [
    `/lineage/assets/${assetId}?tenant=${TENANT}&tab=path&to=${from}`,
    /1 of 1 path/,
  ],
  "the events of an asset": ({ assetId, eventId }) => [
    `/lineage/assets/${assetId}?tenant=${TENANT}&tab=history&event=${eventId}`,
    "spark",
  ],
  "the tenants of lineage": () => ["/lineage/tenants", "millrace"],
  "a tenant of lineage": () => [`/lineage/tenants?id=${TENANT}`, "Events are applied as they come."],
  "the dead letters": ({ deadLetterId }) => [
    `/lineage/dead-letters?tenant=${TENANT}&id=${deadLetterId}`,
    "It names 10,000 columns.",
  ],
  "the tasks of lineage": ({ taskId }) => [`/lineage/tasks?tenant=${TENANT}&id=${taskId}`, "the model answered 500"],
  "the batches of lineage": () => [`/lineage/tasks?tenant=${TENANT}&tab=batches`, "1 of 2"],
  "the keys": ({ keyName }) => ["/admin", keyName],
  "the tenants": () => ["/admin?tab=tenants", "t7"],
  "the audit log": () => ["/admin?tab=audit", "session.start"],
  "the doctor": () => ["/admin?tab=doctor", /The watermark does not pass a missing window/],
  "the settings": () => ["/admin?tab=settings", "MILLRACE_PORT"],
};

describe.runIf(hasBrowser)("in a browser", () => {
  const browser = useConsole({
    get url() {
      return harvests.millrace.url;
    },
  });
  let made: EveryPage;
  beforeAll(async () => {
    made = await fillEveryPage(database, harvests);
  });

  test.each(Object.entries(PAGES))("%s", async (_, pageOf) => {
    const [path, shown] = pageOf(made);
    const { page } = await browser.open(path, { viewport: DESKTOP });
    await page
      .locator("main")
      .getByText(shown)
      .or(page.getByRole("button", { name: shown }))
      .filter({ visible: true })
      .first()
      .waitFor();
    expect(await faultsInBothThemes(page)).toEqual([]);
    await page.setViewportSize(PHONE);
    // The page is drawn again in its new size. Lists and graphs scroll in themselves.
    await expect.poll(() => page.evaluate(tooWide)).toEqual([]);
  });
});

/** What would make a person scroll sideways. */
function tooWide(): string[] {
  return [...document.querySelectorAll("html, main, aside, dialog")]
    .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
    .map(({ tagName, scrollWidth, clientWidth }) => `${tagName}: ${scrollWidth} px in ${clientWidth} px`);
}
