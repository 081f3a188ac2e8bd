/**
 * Millrace's own lineage: its runs tell the sink what they read and wrote, like any other producer, so that an indicator can
 * be followed back to where its data come from. What is to be told is written in the transaction of the end of a run.
 */
import type { ModelFlow } from "../../arrivals/index.ts";
import type { Engines } from "../../engines/index.ts";
import type { Db, Tx } from "../../kernel/data/db.ts";
import { OperatorError } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { OutboxConsumer, OutboxEvent } from "../../kernel/work/outbox.ts";
import type { Ingest, TakingTenant } from "../ingest.ts";
import type { LineageSettings } from "../settings.ts";
import { findTenant, insertTenant } from "../store/tenants.ts";
import { createConsumer, OWN_TOPIC, type OwnTold } from "./consumer.ts";
import { type FileFlow, fileEvent } from "./file-events.ts";
import { modelEvents } from "./model-events.ts";
import { runEvents } from "./run-events.ts";
import type { RunFlow } from "./run-flows.ts";

export interface OwnLineage {
  /** Hand it to the outbox, in every process that emits and in every process that relays. */
  consumer: OutboxConsumer;
  /** What to emit of a model's run. */
  ofModel(flow: ModelFlow): OutboxEvent[];
  /** What to emit of chains' runs. */
  ofRuns(flows: readonly RunFlow[]): OutboxEvent[];
  /** What to emit of files in this transaction. It is the same for each file of a rule, so a process tells it once. */
  ofFiles(tx: Pick<Tx, "afterCommit">, flows: readonly FileFlow[]): OutboxEvent[];
}

type OwnSettings = NonNullable<LineageSettings["own"]>;

export interface OwnLineageDeps {
  db: Db;
  clock: Clock;
  ids: Ids;
  lineage: { ingest: Ingest };
  engines: Pick<Engines, "names" | "get">;
}

const FILES_REMEMBERED_MAX = 10_000;

export async function openOwnLineage(settings: OwnSettings, deps: OwnLineageDeps): Promise<OwnLineage> {
  const { db, clock, ids, lineage, engines } = deps;
  const tenant = await ownTenant(db, settings);
  const toldOfFiles = new Set<string>();

  const dialectOf = (engine: string) => (engines.names().includes(engine) ? engines.get(engine).kind : undefined);
  const outboxEvent = (bodies: string[]): OutboxEvent => ({
    eventId: ids.uuid(),
    topic: OWN_TOPIC,
    payload: { bodies } satisfies OwnTold,
  });

  return {
    consumer: createConsumer(tenant, lineage.ingest),
    ofModel: (flow) => [outboxEvent(modelEvents(flow, clock.now(), dialectOf))],
    ofRuns: (flows) => flows.map((flow) => outboxEvent(runEvents(flow, clock.now(), dialectOf))),
    ofFiles(tx, flows) {
      const named = new Map(flows.map((flow) => [`${flow.table}\n${flow.pattern}`, flow]));
      const news = [...named].filter(([name]) => !toldOfFiles.has(name));
      tx.afterCommit(() => {
        if (toldOfFiles.size + news.length > FILES_REMEMBERED_MAX) toldOfFiles.clear();
        for (const [name] of news) toldOfFiles.add(name);
      });
      return news.map(([, flow]) => outboxEvent([fileEvent(flow, clock.now())]));
    },
  };
}

/** It has no baseline to wait for, so it is ready at once. One that is there already is taken as it is. */
async function ownTenant(db: Db, { id, code, name }: OwnSettings): Promise<TakingTenant> {
  const tenant = { id: String(id), code, name };
  const made = await insertTenant(db, { ...tenant, state: "READY", rateLimitPerMinute: null, bodyLimitBytes: null });
  const present = made ?? (await findTenant(db, tenant.id));
  if (present) return present;
  throw new OperatorError(
    `lineage.own in the configuration wants the code \`${code}\` for tenant ${id}, but another tenant has it. Choose another code, or the id of that tenant.`,
  );
}
