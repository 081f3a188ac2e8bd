/**
 * Millrace's own lineage: its runs report what they read and wrote as OpenLineage events, like any other producer. The events are
 * written to the outbox in the transaction that ends the run.
 */
import type { ModelFlow } from "../../arrivals/index.ts";
import type { Engines } from "../../engines/index.ts";
import type { LandedWindow } from "../../harvest/index.ts";
import type { Db, Tx } from "../../kernel/data/db.ts";
import { OperatorError } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { OutboxConsumer, OutboxEvent } from "../../kernel/work/outbox.ts";
import type { Ingest, TakingTenant } from "../ingest/ingest.ts";
import { DEFAULT_OWN, type LineageSettings } from "../settings.ts";
import { findTenant, insertTenant } from "../store/tenants.ts";
import { createConsumer, OWN_TOPIC, type OwnEvents } from "./consumer.ts";
import { type FileFlow, fileEvent } from "./file-events.ts";
import { landedEvent } from "./landed-events.ts";
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
  /** What to emit of files in this transaction. It is the same for each file of a rule, so a process emits it once. */
  ofFiles(tx: Pick<Tx, "afterCommit">, flows: readonly FileFlow[]): OutboxEvent[];
  /** What to emit of a window of a source that has landed. */
  ofLanded(landed: LandedWindow): OutboxEvent[];
}

type OwnSettings = Omit<LineageSettings["own"], "enabled">;

export interface OwnLineageDeps {
  db: Db;
  clock: Clock;
  ids: Ids;
  lineage: { ingest: Ingest };
  engines: Pick<Engines, "names" | "get">;
}

const FILES_REMEMBERED_MAX = 10_000;

/** Undefined if nobody has chosen the tenant, and its id or code belongs to another one. */
export async function openOwnLineage(settings: OwnSettings, deps: OwnLineageDeps): Promise<OwnLineage | undefined> {
  const { db, clock, ids, lineage, engines } = deps;
  const tenant = await ownTenant(db, settings);
  if (!tenant) return undefined;
  const reportedFiles = new Set<string>();

  const dialectOf = (engine: string) => (engines.names().includes(engine) ? engines.get(engine).kind : undefined);
  const outboxEvent = (bodies: string[]): OutboxEvent => ({
    eventId: ids.uuid(),
    topic: OWN_TOPIC,
    payload: { bodies } satisfies OwnEvents,
  });

  return {
    consumer: createConsumer(tenant, lineage.ingest),
    ofModel: (flow) => [outboxEvent(modelEvents(flow, clock.now(), dialectOf))],
    ofRuns: (flows) => flows.map((flow) => outboxEvent(runEvents(flow, clock.now(), dialectOf))),
    ofFiles(tx, flows) {
      const named = new Map(flows.map((flow) => [`${flow.table}\n${flow.pattern}`, flow]));
      const news = [...named].filter(([name]) => !reportedFiles.has(name));
      tx.afterCommit(() => {
        if (reportedFiles.size + news.length > FILES_REMEMBERED_MAX) reportedFiles.clear();
        for (const [name] of news) reportedFiles.add(name);
      });
      return news.map(([, flow]) => outboxEvent([fileEvent(flow, clock.now())]));
    },
    ofLanded: (landed) => [outboxEvent([landedEvent(landed, clock.now())])],
  };
}

/**
 * It has no baseline to wait for, so it is ready at once. One that is there already is taken as it is if the settings name it;
 * the default must not add to the graph of a tenant that somebody made for others.
 */
async function ownTenant(db: Db, { id, code, name }: OwnSettings): Promise<TakingTenant | undefined> {
  const tenant = { id: String(id), code, name };
  const made = await insertTenant(db, { ...tenant, state: "READY", rateLimitPerMinute: null, bodyLimitBytes: null });
  const present = made ?? (await findTenant(db, tenant.id));
  const isDefault = id === DEFAULT_OWN.id && code === DEFAULT_OWN.code;
  if (present && (!isDefault || present.code === code)) return present;
  if (isDefault) return undefined;
  throw new OperatorError(
    `lineage.own in the configuration wants the code \`${code}\` for tenant ${id}, but another tenant has it. Choose another code, or the id of that tenant.`,
  );
}
