/** Applies events to the graph, in a transaction that holds the exclusive lock of the tenant's graph. */
import { isTimedOut, isUnavailable, type Queryable, sqlState, type Tx } from "../../kernel/data/db.ts";
import { guarded } from "../../kernel/data/savepoint.ts";
import { storableText } from "../../kernel/data/storable.ts";
import { digestOf, factsOf, type Source } from "../extract/index.ts";
import { apply, type GraphChange, type IncomingAssertion } from "../graph/apply.ts";
import type { Facts } from "../graph/facts.ts";
import { hashUuid } from "../graph/hash-uuid.ts";
import { mentionKeys } from "../graph/timed-assertions.ts";
import { addAssertions, addMentions, knownAssertions, touchAssertions } from "../store/assertions.ts";
import type { ApplyState } from "../store/events.ts";
import { countExecutions } from "../store/executions.ts";
import { type EventHead, type ParsedEvent, parseEvent } from "./event.ts";

export interface ReadEvent {
  event: ParsedEvent;
  /** The exact text of the event. */
  body: string;
  source: Source;
  /** Of a full sync: applied at once, and columns that it does not list are dropped. */
  baseline: boolean;
}

/** An event with everything needed to apply it. */
export interface Incoming extends Omit<ReadEvent, "event"> {
  event: EventHead;
  parsed(): ParsedEvent;
  /** The key of its assertion. */
  assertion: string;
}

/** Called in the transaction, after the graph has changed. */
export type OnChange = (tx: Tx, tenantId: string, change: GraphChange) => Promise<void>;

export interface Outcome {
  state: ApplyState;
  error: string | null;
}

/** What is stored of the assertions of some events. */
export interface Known {
  /** Assertions that have to be applied: the graph does not agree with them, or may not. */
  unsettled: ReadonlySet<string>;
  /** The statement or job of each known assertion, if it has one. */
  processes: ReadonlyMap<string, string | null>;
}

const ERROR_LENGTH_MAX = 2_000;
const CONFLICT = /^40/;

/** Whether the transaction may succeed if it is repeated, so that no event is at fault. */
export function isTransient(error: unknown): boolean {
  return isUnavailable(error) || isTimedOut(error) || CONFLICT.test(sqlState(error) ?? "");
}

export function incomingOf({ event, body, source, baseline }: ReadEvent): Incoming {
  const digest = digestOf(event, source);
  const assertion = baseline ? hashUuid(`${digest} baseline`) : digest;
  return { event, parsed: () => event, body, source, baseline, assertion };
}

/** The same without the parsed event, which takes many times the memory of its text; it is parsed again if needed. */
export function withoutParsed({ event, body, source, baseline, assertion }: Incoming): Incoming {
  const { kind, at, eventType, runId, job, producer } = event;
  const named = job && { namespace: job.namespace, name: job.name };
  const head = { kind, at, eventType, runId, job: named, producer };
  return { event: head, parsed: () => parseEvent(JSON.parse(body)), body, source, baseline, assertion };
}

/**
 * Applies them together, or one by one if that fails, so that only an event that cannot be applied becomes a dead letter.
 * Returns the outcome of each, in their order.
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
    if (isTransient(error)) throw error;
    if (incoming.length === 1)
      return [{ state: "DEAD", error: storableText((error as Error).message, ERROR_LENGTH_MAX) }];
    const outcomes: Outcome[] = [];
    for (const one of incoming) outcomes.push(...(await applyIncoming(tx, tenantId, [one], onChange)));
    return outcomes;
  }
}

/** The outcomes to store of events that could not be applied. */
export function deadLetters(ids: readonly string[], outcomes: readonly Outcome[]) {
  return outcomes.flatMap(({ state, error }, index) =>
    state === "DEAD" ? [{ id: ids[index] as string, apply_state: state, apply_error: error, assertion: null }] : [],
  );
}

/** For events of settled assertions: updates the last time of each assertion, and the number of executions. */
export async function recordRepeats(
  tx: Queryable,
  tenantId: string,
  incoming: readonly Incoming[],
  { processes }: Known,
): Promise<Outcome[]> {
  await Promise.all([touchAssertions(tx, tenantId, timesOf(incoming)), countRuns(tx, tenantId, incoming, processes)]);
  return incoming.map(() => ({ state: "APPLIED", error: null }));
}

async function applyAll(tx: Queryable, tenantId: string, incoming: readonly Incoming[]): Promise<GraphChange> {
  const [known] = await Promise.all([
    readKnown(tx, tenantId, incoming),
    touchAssertions(tx, tenantId, timesOf(incoming)),
  ]);
  const factsByAssertion = new Map<string, Facts>();
  const assertions = incoming
    .filter(({ assertion }) => known.unsettled.has(assertion))
    .map(({ event, parsed, source, assertion, baseline }): IncomingAssertion => {
      const facts = factsByAssertion.get(assertion) ?? factsOf(parsed(), source);
      factsByAssertion.set(assertion, facts);
      return { assertion, at: event.at, facts, baseline, known: known.processes.has(assertion) };
    });
  await addFresh(tx, tenantId, incoming, assertions);
  const change = await apply(tx, tenantId, assertions);
  await countRuns(tx, tenantId, incoming, new Map([...known.processes, ...change.processes]));
  return change;
}

export async function readKnown(tx: Queryable, tenantId: string, incoming: readonly Incoming[]): Promise<Known> {
  const earliest = new Map<string, number>();
  for (const { assertion, event } of incoming) {
    earliest.set(assertion, Math.min(event.at, earliest.get(assertion) ?? event.at));
  }
  const assertions = [...earliest].map(([key, at]) => ({ key, at }));
  const known = await knownAssertions(tx, tenantId, assertions);
  const settled = new Set(known.filter(({ in_full, overtaken }) => !in_full && !overtaken).map(({ key }) => key));
  return {
    unsettled: new Set(assertions.map(({ key }) => key).filter((key) => !settled.has(key))),
    processes: new Map(known.map(({ key, process_id }) => [key, process_id])),
  };
}

async function addFresh(
  tx: Queryable,
  tenantId: string,
  incoming: readonly Incoming[],
  assertions: readonly IncomingAssertion[],
): Promise<void> {
  const fresh = new Map(assertions.filter(({ known }) => !known).map(({ assertion, facts }) => [assertion, facts]));
  const first = new Map(incoming.map((one) => [one.assertion, one]));
  const latest = new Map(timesOf(incoming).map(({ key, last_at }) => [key, last_at]));
  const rows = [...fresh.keys()].map((key) => {
    const { body, source, baseline, event } = first.get(key) as Incoming;
    return { key, last_at: latest.get(key) ?? event.at, in_full: true, event: body, source, baseline };
  });
  const mentions = [...fresh].flatMap(([assertion, facts]) => mentionKeys(facts).map((key) => ({ key, assertion })));
  await Promise.all([addAssertions(tx, tenantId, rows), addMentions(tx, tenantId, mentions)]);
}

/** Each assertion once, with its latest time. */
function timesOf(incoming: readonly Incoming[]): { key: string; last_at: number }[] {
  const latest = new Map<string, number>();
  for (const { assertion, event } of incoming)
    latest.set(assertion, Math.max(event.at, latest.get(assertion) ?? event.at));
  return [...latest].map(([key, last_at]) => ({ key, last_at }));
}

async function countRuns(
  tx: Queryable,
  tenantId: string,
  incoming: readonly Incoming[],
  processes: Known["processes"],
): Promise<void> {
  const runs = new Map<string, { node_id: string; run_uuid: string; at: number }>();
  for (const { assertion, event } of incoming) {
    const processId = processes.get(assertion) ?? null;
    if (processId === null || event.runId === null) continue;
    const id = `${processId} ${event.runId}`;
    const at = Math.max(event.at, runs.get(id)?.at ?? event.at);
    runs.set(id, { node_id: processId, run_uuid: event.runId, at });
  }
  await countExecutions(tx, tenantId, [...runs.values()]);
}
