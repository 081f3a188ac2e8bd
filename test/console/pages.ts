/** The address of every page and tab of the console, for the test that opens them all and for the screenshots. */

type Id = string | number | undefined;

/** What addresses are made of. */
export interface Places {
  source: string;
  planId: Id;
  sliceId: Id;
  sliceRunId: Id;
  /** The window of a new plan, whose end is exclusive. */
  planFrom: string;
  planTo: string;
  filename: Id;
  chainId: string;
  /** A run with a node that has failed. */
  runId: string;
  failedNode: string;
  goodRunId: string;
  opTime: string;
  /** Where the maps of arrivals begin. */
  firstOpTime: string;
  table: string;
  modelId: string;
  waitingModelId: string;
  kpiId: string;
  deliveryId: Id;
  tenant: Id;
  assetId: Id;
  columnId: Id;
  /** An asset and a column upstream of the two. */
  from: Id;
  fromColumn: Id;
  eventId: Id;
  deadLetterId: Id;
  taskId: Id;
}

type Address = (of: Places) => string;

const tablesMap: Address = ({ firstOpTime, opTime }) => `/arrivals?from=${firstOpTime}&to=${opTime}`;
const modelsMap: Address = ({ firstOpTime, opTime }) => `/arrivals?tab=models&from=${firstOpTime}&to=${opTime}`;
const asset: Address = ({ assetId, tenant }) => `/lineage/assets/${assetId}?tenant=${tenant}`;

export const PAGES = {
  "the overview": () => "/",
  "the overview of an hour": () => "/?range=hour",
  "the sources": () => "/harvest",
  "a new source": () => "/harvest?tab=new",
  "the activity of a source": ({ source }) => `/harvest/${source}`,
  "the plans of a source": ({ source }) => `/harvest/${source}?tab=plans`,
  "the cursors of a source": ({ source }) => `/harvest/${source}?tab=cursors`,
  "a gap of a source": ({ source, sliceId }) => `/harvest/${source}?tab=cursors&slice=${sliceId}`,
  "the gates of a source": ({ source }) => `/harvest/${source}?tab=gates`,
  "the quarantine of a source": ({ source }) => `/harvest/${source}?tab=quarantine`,
  "the definition of a source": ({ source }) => `/harvest/${source}?tab=definition`,
  "a new plan": ({ source, planFrom, planTo }) => `/harvest/${source}?tab=plan&from=${planFrom}&to=${planTo}`,
  "a plan": ({ planId }) => `/harvest/plans/${planId}`,
  "a run of a slice": ({ planId, sliceId, sliceRunId }) =>
    `/harvest/plans/${planId}?slice=${sliceId}&run=${sliceRunId}`,
  "the stages of tracking": () => "/tracking",
  "the files of tracking": () => "/tracking?tab=files",
  "what is stuck in tracking": () => "/tracking?tab=stuck",
  "a shard that is stuck": ({ filename }) => `/tracking?tab=stuck&file=${filename}&shard=1`,
  "a file": ({ filename }) => `/tracking/files/${filename}`,
  "the chains": () => "/chains",
  "the runs of all chains": () => "/chains/runs",
  "a new chain": () => "/chains/new",
  "the runs of a chain": ({ chainId }) => `/chains/${chainId}`,
  "the grid of a chain": ({ chainId }) => `/chains/${chainId}?tab=grid`,
  "the graph of a chain": ({ chainId }) => `/chains/${chainId}?tab=graph`,
  "the definition of a chain": ({ chainId }) => `/chains/${chainId}?tab=definition`,
  "the versions of a chain": ({ chainId }) => `/chains/${chainId}?tab=versions`,
  "the schedules of a chain": ({ chainId }) => `/chains/${chainId}?tab=schedules`,
  "the start of a chain": ({ chainId }) => `/chains/${chainId}?start=true`,
  "a run": ({ goodRunId }) => `/chains/runs/${goodRunId}`,
  "a run with its failed node": ({ runId }) => `/chains/runs/${runId}`,
  "the Gantt chart of a run": ({ runId }) => `/chains/runs/${runId}?tab=gantt`,
  "the grid of a run": ({ runId }) => `/chains/runs/${runId}?tab=grid`,
  "the nodes of a run": ({ runId }) => `/chains/runs/${runId}?tab=table`,
  "the log of a run": ({ runId, failedNode }) => `/chains/runs/${runId}?tab=log&node=${failedNode}`,
  "the comparison of two runs": ({ runId, goodRunId }) => `/chains/runs/${runId}?tab=compare&with=${goodRunId}`,
  "the tables by opTime": tablesMap,
  "a table that has arrived": (of) => `${tablesMap(of)}&row=${of.table}&at=${of.opTime}`,
  "the models by opTime": modelsMap,
  "why a model waits": (of) => `${modelsMap(of)}&row=${of.waitingModelId}&at=${of.opTime}`,
  "why a model has run": (of) => `${modelsMap(of)}&row=${of.modelId}&at=${of.opTime}`,
  "a model": ({ modelId }) => `/arrivals/models/${modelId}`,
  "a KPI": ({ kpiId }) => `/arrivals/kpis/${kpiId}`,
  "the deliveries": () => "/arrivals/deliveries",
  "a failed delivery": ({ deliveryId }) => `/arrivals/deliveries?id=${deliveryId}`,
  "the subscriptions": () => "/arrivals/deliveries?tab=subscriptions",
  "the assets of lineage": ({ tenant }) => `/lineage?tenant=${tenant}`,
  "a search in lineage": ({ tenant }) => `/lineage?tenant=${tenant}&q=revenue`,
  "an asset": asset,
  "the graph of an asset": (of) => `${asset(of)}&tab=graph&direction=up&depth=10`,
  "the graph of a column": ({ columnId, tenant }) =>
    `/lineage/assets/${columnId}?tenant=${tenant}&tab=graph&level=columns`,
  "the impact of an asset": ({ from, tenant }) => `/lineage/assets/${from}?tenant=${tenant}&tab=impact`,
  "the impact of a column": ({ fromColumn, tenant }) => `/lineage/assets/${fromColumn}?tenant=${tenant}&tab=impact`,
  "the paths between two assets": (of) => `${asset(of)}&tab=path&to=${of.from}`,
  "the events of an asset": (of) => `${asset(of)}&tab=history&event=${of.eventId}`,
  "the tenants of lineage": () => "/lineage/tenants",
  "a tenant of lineage": ({ tenant }) => `/lineage/tenants?id=${tenant}`,
  "the dead letters": ({ tenant, deadLetterId }) => `/lineage/dead-letters?tenant=${tenant}&id=${deadLetterId}`,
  "the tasks of lineage": ({ tenant, taskId }) => `/lineage/tasks?tenant=${tenant}&id=${taskId}`,
  "the batches of lineage": ({ tenant }) => `/lineage/tasks?tenant=${tenant}&tab=batches`,
  "the keys": () => "/admin",
  "the tenants": () => "/admin?tab=tenants",
  "a tenant": ({ tenant }) => `/admin?tab=tenants&row=${tenant}`,
  "the audit log": () => "/admin?tab=audit",
  "the doctor": () => "/admin?tab=doctor",
  "the settings": () => "/admin?tab=settings",
  "an address without a page": () => "/no/such/page",
} as const satisfies Record<string, Address>;

export type PageName = keyof typeof PAGES;
