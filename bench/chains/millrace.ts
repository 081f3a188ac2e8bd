/**
 * Millrace's own engine as `millrace serve` runs it: definitions and runs go through the use cases, the worker claims nodes
 * from the database, and every state row is written.
 */

import { Type } from "typebox";
import { CATALOGUE } from "../../src/chains/catalogue.ts";
import { createChains } from "../../src/chains/chains.ts";
import { type NodeType, nodeType } from "../../src/chains/types/node-type.ts";
import type { Db } from "../../src/kernel/data/db.ts";
import { createSecretBox } from "../../src/kernel/secrets/cipher.ts";
import { createNamedSecrets } from "../../src/kernel/secrets/named-secrets.ts";
import { createMetrics } from "../../src/kernel/telemetry/metrics.ts";
import { createOutbox } from "../../src/kernel/work/outbox.ts";
import { openPulse } from "../../src/kernel/work/pulse.ts";
import { openSession } from "../../src/kernel/work/session.ts";
import { createWake } from "../../src/kernel/work/wake.ts";
import { silentLog } from "../../test/log.ts";
import { noHints } from "../../test/no-hints.ts";
import { type Engine, keepInFlight } from "./engine.ts";
import { watchRunEnds } from "./run-ends.ts";
import type { Shape } from "./shapes.ts";

const TYPE = "bench";

/** As many as the loads keep under way; the default of 100 suits nodes that do something. */
const SLOTS = 500;
const ACTOR = {
  caller: { name: "bench", keyId: null, scopes: [], tenantId: null, source: null, rateLimitPerMinute: null },
  address: "",
  requestId: "",
};

async function openChains(db: Db, type: NodeType) {
  const log = silentLog;
  const metrics = createMetrics().define(CATALOGUE.metrics);
  const onRun = () => {};
  const pulse = await openPulse({ db, log });
  const wake = createWake({ pulse, log });
  const session = await openSession({ pulse, log, version: "bench", roles: ["scheduler", "worker"] });
  const settings = { slots: SLOTS, stopGraceSeconds: 30, drainSeconds: 5, lostLimit: 5, keepDays: 365, nodeTypes: [] };
  const hasArrived = async () => new Set<string>();
  const outbox = createOutbox([], wake);
  const secrets = createNamedSecrets({ db, hints: noHints, box: createSecretBox(undefined) });
  const chains = createChains({
    db,
    wake,
    hints: noHints,
    session,
    metrics,
    log,
    onRun,
    settings,
    secrets,
    types: [type],
    hasArrived,
    outbox,
  });
  session.service.start();
  chains.worker.start();
  chains.timers.start();
  return {
    ...chains,
    async stop() {
      await chains.timers.stop();
      await chains.worker.stop();
      await session.close();
      await wake.stop();
      await pulse.stop();
    },
  };
}

export async function millrace(db: Db): Promise<Engine> {
  const ends = watchRunEnds(db);
  let onNode = (_runId: string) => {};
  const type = nodeType({
    type: TYPE,
    readsParents: false,
    summary: "Does nothing but say that it ran.",
    cfg: Type.Object({}),
    async execute({ runId }) {
      onNode(runId);
      ends.executed(runId);
      return {};
    },
  });
  const chains = await openChains(db, type);
  const chainIds = new Map<Shape, string>();

  // Once for each shape: the warm-up round defines, the rounds that count only start.
  async function chainOf(shape: Shape): Promise<string> {
    const known = chainIds.get(shape);
    if (known !== undefined) return known;
    const nodes = shape.layers.flat().map((node) => ({ ...node, type: TYPE }));
    const { chain_id } = await chains.definitions.create({ name: shape.name, dagJson: { nodes } }, ACTOR);
    chainIds.set(shape, chain_id);
    return chain_id;
  }

  return {
    name: "Millrace",
    async run(load, observe) {
      onNode = observe;
      const chainId = await chainOf(load.shape);
      const nodes = load.shape.layers.flat().length;
      await keepInFlight(load, async () => {
        const { runId } = await chains.runs.start(chainId, { by: "bench" });
        await ends.of(runId, nodes);
      });
    },
    end: () => chains.stop(),
  };
}
