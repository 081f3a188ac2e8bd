/**
 * Parses an OpenLineage event. Its kind follows from its structure, not from its `schemaURL`, which many producers leave
 * out. Only errors in the core of the schema are refused, because a client drops an event for good at an error; faults in
 * facets become warnings when the event is read.
 */

import { storableText } from "../../kernel/data/storable.ts";
import { invalid } from "../../kernel/errors.ts";
import { UUID } from "../../kernel/ids.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { hashUuid } from "../graph/hash-uuid.ts";
import { isoOf } from "../graph/micros.ts";
import { timeOf } from "./event-time.ts";

export type EventKind = "RUN_EVENT" | "DATASET_EVENT" | "JOB_EVENT";
export type Facets = Readonly<Record<string, unknown>>;

export interface Dataset {
  namespace: string;
  name: string;
  facets: Facets;
}

/** What an event is kept and found by. */
export interface EventHead {
  kind: EventKind;
  /** Microseconds since 1970. */
  at: number;
  /** START, RUNNING, COMPLETE, ABORT, FAIL or OTHER, or whatever else a producer writes there. */
  eventType: string | null;
  /** A uuid. One that is none is replaced by its hash, so that the events of a run still belong together. */
  runId: string | null;
  job: { namespace: string; name: string } | null;
  producer: string | null;
}

export interface ParsedEvent extends EventHead {
  job: { namespace: string; name: string; facets: Facets } | null;
  inputs: readonly Dataset[];
  /** Of a DatasetEvent: its one dataset. */
  outputs: readonly Dataset[];
  runFacets: Facets;
}

export const NAME_LENGTH_MAX = 4_000;
const DATASETS_MAX = 10_000;
const PRODUCER_LENGTH_MAX = 4_000;
const EVENT_TYPE_LENGTH_MAX = 32;
/** The first problems are enough to find a systematic fault. */
const PROBLEMS_TOLD_MAX = 10;
const NO_FACETS: Facets = {};

/**
 * Throws VALIDATION_FAILED, with the path of each thing that is wrong. An event with a time after `latest`, in
 * microseconds, is refused too: what it says, a drop for example, would count against every event until then.
 */
export function parseEvent(value: unknown, latest = Number.POSITIVE_INFINITY): ParsedEvent {
  if (!isRecord(value)) throw invalid("The event is not an object");
  const problems: string[] = [];
  const kind = kindOf(value);
  const { run, job, dataset, inputs, outputs } = value;
  const event: ParsedEvent = {
    kind,
    at: eventTimeOf(value["eventTime"], latest, problems),
    eventType: eventTypeOf(value["eventType"], problems),
    runId: kind === "RUN_EVENT" ? runIdOf(run, problems) : null,
    job: kind === "DATASET_EVENT" ? null : namedOf(job, "/job", problems),
    producer: typeof value["producer"] === "string" ? storableText(value["producer"], PRODUCER_LENGTH_MAX) : null,
    inputs: kind === "DATASET_EVENT" ? [] : datasetsOf(inputs, "/inputs", problems),
    outputs:
      kind === "DATASET_EVENT" ? [namedOf(dataset, "/dataset", problems)] : datasetsOf(outputs, "/outputs", problems),
    runFacets: isRecord(run) ? facetsOf(run["facets"], "/run/facets", problems) : NO_FACETS,
  };
  if (event.inputs.length + event.outputs.length > DATASETS_MAX) {
    problems.push(`/inputs and /outputs name more than ${DATASETS_MAX} datasets`);
  }
  if (problems.length > 0) throw invalid(sentenceOf(problems));
  return event;
}

function kindOf({ run, job, dataset }: Record<string, unknown>): EventKind {
  if (isGiven(run)) return "RUN_EVENT";
  if (isGiven(dataset) && isGiven(job)) {
    throw invalid("The event has both /dataset and /job but no /run: it must be of one kind");
  }
  if (isGiven(dataset)) return "DATASET_EVENT";
  if (isGiven(job)) return "JOB_EVENT";
  throw invalid("The event has neither /run nor /job nor /dataset");
}

function eventTimeOf(value: unknown, latest: number, problems: string[]): number {
  if (!isGiven(value)) {
    problems.push("/eventTime is missing");
    return 0;
  }
  const at = typeof value === "string" ? timeOf(value) : undefined;
  if (at === undefined) problems.push("/eventTime is not a time like 2026-01-31T23:59:59.123Z, from 1970 to 2255");
  else if (at > latest) {
    problems.push(`/eventTime is ${isoOf(at)}, and the latest time that is taken now is ${isoOf(latest)}`);
  }
  return at ?? 0;
}

function eventTypeOf(value: unknown, problems: string[]): string | null {
  if (!isGiven(value) || value === "") return null;
  if (typeof value === "string") return storableText(value, EVENT_TYPE_LENGTH_MAX).toUpperCase();
  problems.push("/eventType is not text");
  return null;
}

function runIdOf(run: unknown, problems: string[]): string | null {
  if (!isRecord(run)) {
    problems.push("/run is not an object");
    return null;
  }
  const runId = run["runId"];
  // Some producers count their runs; a number names one as well as text does.
  if (typeof runId === "number") return runIdFrom(String(runId));
  const text = textOf(runId, "/run/runId", problems);
  return text === "" ? null : runIdFrom(text);
}

function runIdFrom(text: string): string {
  return UUID.test(text) ? text.toLowerCase() : hashUuid(text);
}

function datasetsOf(value: unknown, path: string, problems: string[]): Dataset[] {
  if (!isGiven(value)) return [];
  if (!Array.isArray(value)) {
    problems.push(`${path} is not a list`);
    return [];
  }
  if (value.length > DATASETS_MAX) {
    problems.push(`${path} names more than ${DATASETS_MAX} datasets`);
    return [];
  }
  return value.map((dataset: unknown, index) => namedOf(dataset, `${path}/${index}`, problems));
}

/** A job or dataset. What it lacks is added to `problems`, in which case the result is not used. */
function namedOf(value: unknown, path: string, problems: string[]): Dataset {
  if (!isRecord(value)) {
    problems.push(isGiven(value) ? `${path} is not an object` : `${path} is missing`);
    return { namespace: "", name: "", facets: NO_FACETS };
  }
  return {
    namespace: textOf(value["namespace"], `${path}/namespace`, problems),
    name: textOf(value["name"], `${path}/name`, problems),
    facets: facetsOf(value["facets"], `${path}/facets`, problems),
  };
}

function textOf(value: unknown, path: string, problems: string[]): string {
  if (typeof value === "string" && value !== "" && value.length <= NAME_LENGTH_MAX) {
    return storableText(value, NAME_LENGTH_MAX);
  }
  problems.push(
    !isGiven(value)
      ? `${path} is missing`
      : typeof value !== "string"
        ? `${path} is not text`
        : value === ""
          ? `${path} is empty`
          : `${path} is longer than ${NAME_LENGTH_MAX} characters`,
  );
  return "";
}

function facetsOf(value: unknown, path: string, problems: string[]): Facets {
  if (isRecord(value)) return value;
  if (isGiven(value)) problems.push(`${path} is not an object`);
  return NO_FACETS;
}

function sentenceOf(problems: readonly string[]): string {
  const shown = problems.slice(0, PROBLEMS_TOLD_MAX).join("; ");
  const left = problems.length - PROBLEMS_TOLD_MAX;
  return left > 0 ? `${shown}; and ${left} more` : shown;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
