/** The parts of harvest in one process, connected: registry, planner, executor and landing. */
import { join, resolve } from "node:path";
import type { Lake } from "../engines/index.ts";
import type { ModuleContext, Runnable } from "../kernel/module.ts";
import type { Outbound } from "../kernel/net/outbound.ts";
import { type Bodies, createBodies } from "./bodies/bodies.ts";
import type { CATALOGUE } from "./catalogue.ts";
import { type ConnectionCheck, createConnectionCheck } from "./control/check.ts";
import { createPauses, type Pauses } from "./control/pauses.ts";
import { createRewinds, type Rewinds } from "./control/rewind.ts";
import { createSliceCancel, type SliceCancel } from "./control/slice-cancel.ts";
import { type Credentials, createCredentials } from "./definition/credentials.ts";
import { createRegistry, type Registry } from "./definition/registry.ts";
import { createLanding, type Landing, type LandingDeps } from "./landing/landing.ts";
import { createMonths } from "./months.ts";
import { createNodeWaits, type NodePort, type NodeWaits } from "./nodes/node-waits.ts";
import { createGaps, type Gaps } from "./plan/gaps.ts";
import { createPlanner, type Planner } from "./plan/planner.ts";
import { createPlannerService } from "./plan/planner-service.ts";
import { createReads, type Reads } from "./plan/reads.ts";
import { endpointOf } from "./plan/request.ts";
import { createSchedules, type Schedules } from "./plan/schedules.ts";
import { createSettle } from "./plan/settle.ts";
import { createWorker } from "./run/worker.ts";
import type { HarvestSettings } from "./settings.ts";
import { makeDueForGates } from "./store/queue/tasks.ts";
import { PLANS_TOPIC } from "./topics.ts";

export type HarvestContext = ModuleContext<typeof CATALOGUE, HarvestSettings>;

export interface HarvestDeps extends HarvestContext {
  outbound: Outbound;
  lake: Lake | undefined;
  tables: LandingDeps["tables"];
  arrivals: LandingDeps["arrivals"];
  chains: NodePort;
}

export interface Harvest {
  registry: Registry;
  credentials: Credentials;
  planner: Planner;
  schedules: Schedules;
  gaps: Gaps;
  nodeWaits: NodeWaits;
  pauses: Pauses;
  sliceCancel: SliceCancel;
  rewinds: Rewinds;
  connectionCheck: ConnectionCheck;
  reads: Reads;
  landing: Landing;
  bodies: Bodies;
  services: { scheduler: Runnable[]; worker: Runnable[] };
  /** The id of an endpoint; unset, of the source's default one. Throws 404. */
  endpointId(source: string, endpoint: string | undefined): Promise<number>;
}

export function createHarvest(deps: HarvestDeps): Harvest {
  const { section: settings, wake } = deps;
  const bodies = createBodies({ ...deps, dir: bodiesDir(deps) });
  const credentials = createCredentials(deps);
  const registry = createRegistry({
    ...deps,
    allowPrivate: allowedHosts(deps),
    onSchedules: () => wake.hint(PLANS_TOPIC),
  });
  const landing = createLanding(deps);
  const settle = createSettle({ ...deps, landing });
  const planner = createPlanner({ ...deps, sources: registry, settle, landing });
  const schedules = createSchedules({ ...deps, planner });
  const reads = createReads(deps);
  const nodeWaits = createNodeWaits({ ...deps, planner, reads });
  const pauses = createPauses({ ...deps, registry });
  deps.gates.onChange(makeDueForGates);
  const running = { ...deps, pauses, settings, bodies, credentials, landing, settle, random: Math.random };
  const worker = createWorker(running);
  return {
    registry,
    credentials,
    planner,
    schedules,
    gaps: createGaps(deps),
    nodeWaits,
    pauses,
    rewinds: createRewinds(deps),
    sliceCancel: createSliceCancel({ ...deps, settle, landing }),
    // Also of a source that is paused: so a person learns whether to resume it.
    connectionCheck: createConnectionCheck({ ...running, registry, pauses: { holds: () => false } }),
    reads,
    landing,
    bodies,
    services: {
      scheduler: [createPlannerService({ ...deps, planner, schedules }), nodeWaits.service, createMonths(deps)],
      worker: [pauses.service, worker, ...(landing.worker ? [landing.worker] : [])],
    },
    async endpointId(name, endpoint) {
      const source = await registry.get(name);
      const id = source.endpointIds.get(endpointOf(source, endpoint));
      if (id === undefined) throw new Error(`the endpoint ${endpoint} of ${name} has no id`);
      return id;
    },
  };
}

/** `host:port` of sources that may be private or have no TLS. */
export function allowedHosts({ section, settings }: HarvestContext): string[] {
  return [...settings.allowPrivate, ...section.allowPrivate.map((host) => host.toLowerCase())];
}

/** Undefined for rows in Postgres. */
function bodiesDir({ section, configDir, dataDir }: HarvestContext): string | undefined {
  if (section.bodies === "postgres") return undefined;
  if (section.bodies !== undefined) return resolve(configDir, section.bodies);
  return dataDir && join(dataDir, "bodies");
}
