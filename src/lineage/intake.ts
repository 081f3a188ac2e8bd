/** Turns events into changes of the graph, within a transaction that holds the tenant's graph alone. */
import { isTimedOut, isUnavailable, type Queryable, sqlState, type Tx } from "../kernel/data/db.ts";
import { guarded } from "../kernel/data/savepoint.ts";
import { storableText } from "../kernel/data/storable.ts";
import { apply, type GraphChange, type TellingNow } from "./apply.ts";
import type { Claims } from "./claims.ts";
import { type EventHead, type ParsedEvent, parseEvent } from "./event.ts";
import { claimsOf, digestOf, type Source } from "./extract/index.ts";
import { hashUuid } from "./hash-uuid.ts";
import type { ApplyState } from "./store/events.ts";
import { countExecutions } from "./store/executions.ts";
import { addMentions, addTellings, knownTellings, tellAgain } from "./store/tellings.ts";
import { mentionKeys } from "./timed-tellings.ts";

export interface ReadEvent {
  event: ParsedEvent;
  /** The exact text of the event. */
  body: string;
  source: Source;
  /** Of a full sync: applied at once, and what it does not list is gone. */
  baseline: boolean;
}

/** An event with all that applying it needs. */
export interface Incoming extends Omit<ReadEvent, "event"> {
  event: EventHead;
  whole(): ParsedEvent;
  /** The key of what it tells. */
  telling: string;
}

/** Called in the transaction, after the graph has changed. */
export type OnChange = (tx: Tx, tenantId: string, change: GraphChange) => Promise<void>;

export interface Outcome {
  state: ApplyState;
  error: string | null;
}

/** What the graph holds of what events tell. */
export interface Known {
  /** Tellings that it does not say yet, or may not say any more. */
  callForWork: ReadonlySet<string>;
  /** The statement or job of each telling that was told before, if it tells of one. */
  processes: ReadonlyMap<string, string | null>;
}

const ERROR_LENGTH_MAX = 2_000;
const CONFLICT = /^40/;

/** Whether the transaction may succeed another time as it is, so that no event is to blame. */
export function mayPass(error: unknown): boolean {
  return isUnavailable(error) || isTimedOut(error) || CONFLICT.test(sqlState(error) ?? "");
}

export function incomingOf({ event, body, source, baseline }: ReadEvent): Incoming {
  const digest = digestOf(event, source);
  const telling = baseline ? hashUuid(`${digest} baseline`) : digest;
  return { event, whole: () => event, body, source, baseline, telling };
}

/** The same without the whole event, which takes many times the room of its text; should it be needed, it is read again. */
export function withoutWhole({ event, body, source, baseline, telling }: Incoming): Incoming {
  const { kind, at, eventType, runId, job, producer } = event;
  const named = job && { namespace: job.namespace, name: job.name };
  const head = { kind, at, eventType, runId, job: named, producer };
  return { event: head, whole: () => parseEvent(JSON.parse(body)), body, source, baseline, telling };
}

/**
 * Applies them together, or one by one where that fails, so that an event that cannot be applied stands alone as a dead
 * letter. Tells what became of each, in their order.
 */
export async function applyIncoming(
  tx: Tx,
  tenantId: string,
  incoming: readonly Incoming[],
  onChange: OnChange,
): Promise<Outcome[]> {
  if (incoming.length === 0) return [];
  try {
    await guarded(tx, async (own) => onChange(own, tenantId, await applyAll(own, tenantId, incoming)));
    return incoming.map(() => ({ state: "APPLIED", error: null }));
  } catch (error) {
    if (mayPass(error)) throw error;
    if (incoming.length === 1)
      return [{ state: "DEAD", error: storableText((error as Error).message, ERROR_LENGTH_MAX) }];
    const outcomes: Outcome[] = [];
    for (const one of incoming) outcomes.push(...(await applyIncoming(tx, tenantId, [one], onChange)));
    return outcomes;
  }
}

/** What became of stored events that could not be applied. */
export function deadLetters(ids: readonly string[], outcomes: readonly Outcome[]) {
  return outcomes.flatMap(({ state, error }, index) =>
    state === "DEAD" ? [{ id: ids[index] as string, apply_state: state, apply_error: error, telling: null }] : [],
  );
}

/** For those that tell nothing new: notes when they were last told, and how often their statements ran. */
export async function passOver(
  tx: Queryable,
  tenantId: string,
  incoming: readonly Incoming[],
  { processes }: Known,
): Promise<Outcome[]> {
  await Promise.all([tellAgain(tx, tenantId, timesOf(incoming)), countRuns(tx, tenantId, incoming, processes)]);
  return incoming.map(() => ({ state: "APPLIED", error: null }));
}

async function applyAll(tx: Queryable, tenantId: string, incoming: readonly Incoming[]): Promise<GraphChange> {
  const [known] = await Promise.all([recall(tx, tenantId, incoming), tellAgain(tx, tenantId, timesOf(incoming))]);
  const claimed = new Map<string, Claims>();
  const told = incoming
    .filter(({ telling }) => known.callForWork.has(telling))
    .map(({ event, whole, source, telling, baseline }): TellingNow => {
      const claims = claimed.get(telling) ?? claimsOf(whole(), source);
      claimed.set(telling, claims);
      return { telling, at: event.at, claims, baseline, known: known.processes.has(telling) };
    });
  await addFresh(tx, tenantId, incoming, told);
  const change = await apply(tx, tenantId, told);
  await countRuns(tx, tenantId, incoming, new Map([...known.processes, ...change.processes]));
  return change;
}

export async function recall(tx: Queryable, tenantId: string, incoming: readonly Incoming[]): Promise<Known> {
  const earliest = new Map<string, number>();
  for (const { telling, event } of incoming) {
    earliest.set(telling, Math.min(event.at, earliest.get(telling) ?? event.at));
  }
  const told = [...earliest].map(([key, at]) => ({ key, at }));
  const known = await knownTellings(tx, tenantId, told);
  const settled = new Set(known.filter(({ in_full, overtaken }) => !in_full && !overtaken).map(({ key }) => key));
  return {
    callForWork: new Set(told.map(({ key }) => key).filter((key) => !settled.has(key))),
    processes: new Map(known.map(({ key, process_id }) => [key, process_id])),
  };
}

async function addFresh(
  tx: Queryable,
  tenantId: string,
  incoming: readonly Incoming[],
  told: readonly TellingNow[],
): Promise<void> {
  const fresh = new Map(told.filter(({ known }) => !known).map(({ telling, claims }) => [telling, claims]));
  const first = new Map(incoming.map((one) => [one.telling, one]));
  const latest = new Map(timesOf(incoming).map(({ key, last_at }) => [key, last_at]));
  const tellings = [...fresh.keys()].flatMap((key) => {
    const { body, source, baseline, event } = first.get(key) as Incoming;
    return [{ key, last_at: latest.get(key) ?? event.at, in_full: true, event: body, source, baseline }];
  });
  const mentions = [...fresh].flatMap(([telling, claims]) => mentionKeys(claims).map((key) => ({ key, telling })));
  await Promise.all([addTellings(tx, tenantId, tellings), addMentions(tx, tenantId, mentions)]);
}

/** Each telling once, with the latest time at which it is told. */
function timesOf(incoming: readonly Incoming[]): { key: string; last_at: number }[] {
  const latest = new Map<string, number>();
  for (const { telling, event } of incoming) latest.set(telling, Math.max(event.at, latest.get(telling) ?? event.at));
  return [...latest].map(([key, last_at]) => ({ key, last_at }));
}

async function countRuns(
  tx: Queryable,
  tenantId: string,
  incoming: readonly Incoming[],
  processes: Known["processes"],
): Promise<void> {
  const runs = new Map<string, { node_id: string; run_uuid: string; at: number }>();
  for (const { telling, event } of incoming) {
    const processId = processes.get(telling) ?? null;
    if (processId === null || event.runId === null) continue;
    const id = `${processId} ${event.runId}`;
    const at = Math.max(event.at, runs.get(id)?.at ?? event.at);
    runs.set(id, { node_id: processId, run_uuid: event.runId, at });
  }
  await countExecutions(tx, tenantId, [...runs.values()]);
}
