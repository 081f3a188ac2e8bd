/**
 * Pauses of a source, an endpoint or an operation. While one holds, no task of it is claimed, and its schedules do not fire: they
 * fire once when it ends. A task that runs ends after the page that it is at and goes back into the queue, so that nothing is
 * fetched twice and no slot is held. Claims and schedules ask the database; runs ask this process's copy of the pauses, which a
 * service renews. Those that Millrace makes itself are in refusals.ts.
 */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import type { Db, Tx } from "../../kernel/data/db.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import { LOST_HINT_MS, type Wake } from "../../kernel/work/wake.ts";
import { type HarvestHints, harvestError } from "../catalogue.ts";
import type { Registry } from "../definition/registry.ts";
import { endpointOf } from "../plan/request.ts";
import * as store from "../store/queue/pauses.ts";
import { PAUSES_TOPIC } from "../topics.ts";
import { pausesChanged } from "./refusals.ts";

export interface Pauses {
  /** Repeating it is harmless: the first one stays. Answers the pauses of the source. */
  pause(scope: store.PauseScope, reason: string | null, actor: Actor): Promise<store.PauseRow[]>;
  /** Ends the pause of exactly this scope. Answers it, if there was one, and those of the source that still hold. */
  resume(
    scope: store.PauseScope,
    actor: Actor,
  ): Promise<{ resumed: store.PauseRow | undefined; left: store.PauseRow[] }>;
  list(source: string | undefined): Promise<store.PauseRow[]>;
  /** Whether tasks of it should stop, as far as this process knows. */
  holds(task: { provenance_code: string; endpoint_name: string; operation_code: string }): boolean;
  /** Start it in a process with the role `worker`. */
  service: Service;
}

const PAUSES_MAX = 10_000;

export interface PausesDeps {
  db: Db;
  wake: Wake;
  hints: HarvestHints;
  registry: Pick<Registry, "get">;
  log: ServiceLog;
  onRun: OnRun;
}

export function createPauses({ db, wake, hints, registry, log, onRun }: PausesDeps): Pauses {
  let known: readonly store.PauseRow[] = [];

  async function requireScope({ source, endpoint }: store.PauseScope): Promise<void> {
    const found = await registry.get(source);
    const names = Object.keys(found.definition.endpoints);
    if (endpoint === null) return;
    endpointOf(found, endpoint); // Tasks are those of an endpoint that lists, so a pause of another would hold nothing.
    if (names.includes(endpoint)) return;
    throw harvestError("ENDPOINT_NOT_FOUND", { source, endpoint }, { hint: didYouMean(endpoint, names) });
  }

  const changed = (tx: Tx, source: string) => pausesChanged(tx, { wake, hints }, source);

  const service = createService({
    name: "harvest pauses",
    intervalMs: LOST_HINT_MS,
    log,
    onRun,
    async runOnce() {
      known = await store.listPauses(db, undefined, PAUSES_MAX);
      return { paused: known.length };
    },
  });
  let unlisten: (() => void) | undefined;

  return {
    async pause(scope, reason, actor) {
      await requireScope(scope);
      const { source, endpoint, operation } = scope;
      await db.tx(async (tx) => {
        if (!(await store.insertPause(tx, scope, actor.caller.name, reason))) return;
        await audit(tx, actor, "harvest.pause", source, { endpoint, operation, reason });
        changed(tx, source);
      });
      return store.listPauses(db, source, PAUSES_MAX);
    },

    async resume(scope, actor) {
      await registry.get(scope.source);
      const { source, endpoint, operation } = scope;
      const resumed = await db.tx(async (tx) => {
        const ended = await store.deletePause(tx, scope);
        if (!ended) return undefined;
        const { paused_by: pausedBy, paused_at: pausedAt, reason } = ended;
        await audit(tx, actor, "harvest.resume", source, { endpoint, operation, pausedBy, pausedAt, reason });
        changed(tx, source);
        return ended;
      });
      return { resumed, left: await store.listPauses(db, source, PAUSES_MAX) };
    },

    list: (source) => store.listPauses(db, source, PAUSES_MAX),

    holds: ({ provenance_code, endpoint_name, operation_code }) =>
      known.some(
        (pause) =>
          pause.provenance_code === provenance_code &&
          (pause.endpoint_name ?? endpoint_name) === endpoint_name &&
          (pause.operation_code ?? operation_code) === operation_code,
      ),

    service: {
      ...service,
      start() {
        unlisten = wake.on(PAUSES_TOPIC, service.wake);
        service.start();
      },
      async stop() {
        unlisten?.();
        await service.stop();
      },
    },
  };
}
