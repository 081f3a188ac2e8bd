/**
 * The digest of an assertion: a hash of the parts of an event that facts are extracted from. A run sends the same facts when it
 * starts, runs and ends, and the next run again, so events with the same digest have the same facts. Of a statement only its
 * identity without literals is hashed, since a daily statement often differs in its date alone. So facts of one digest may
 * differ in the run and in the `content` of the statement; the graph keeps the first content.
 */

import { hashUuid } from "../graph/hash-uuid.ts";
import type { Dataset, Facets, ParsedEvent } from "../ingest/event.ts";
import { operationOf } from "./gravitino/gravitino.ts";
import { endedBy, hasHappened } from "./lifecycle.ts";
import { engineOf, statementOf } from "./process.ts";
import type { Source } from "./source.ts";

const JOB_FACETS = ["documentation", "lineage"];
const LINEAGE_FACETS = [
  "schema",
  "columnLineage",
  "symlinks",
  "documentation",
  "ownership",
  "datasetType",
  "tags",
  "catalog",
  "lineage",
];
const OPERATION_FACETS = ["schema", "documentation", "gravitino", "gravitinoTag"];

/** A uuid. It runs for every event: one text, one hash. */
export function digestOf(event: ParsedEvent, source: Source): string {
  const { job, runId, producer, inputs, outputs } = event;
  const isOperation = operationOf(event, source) !== undefined;
  const happened = hasHappened(event);
  const statement = job ? statementOf(job) : undefined;
  const names = isOperation ? OPERATION_FACETS : LINEAGE_FACETS;
  const partsOf = (dataset: Dataset) => [
    dataset.namespace,
    dataset.name,
    picked(dataset.facets, names),
    isOperation ? undefined : endingPart(dataset.facets, happened),
  ];
  return hashUuid(
    JSON.stringify([
      isOperation && [happened],
      runId !== null,
      producer,
      job && [
        job.namespace,
        statement?.jobName ?? job.name,
        statement && [statement.hash, statement.dialect],
        picked(job.facets, JOB_FACETS),
        engineOf(event, job),
      ],
      inputs.map(partsOf),
      outputs.map(partsOf),
    ]),
  );
}

/** A drop that has not happened adds no fact; such a rename says that its table does not exist yet. */
function endingPart(facets: Facets, happened: boolean): unknown {
  const ending = endedBy(facets);
  if (happened) return ending;
  return ending?.kind === "RENAME" ? [ending] : undefined;
}

const picked = (facets: Facets, names: readonly string[]): unknown[] => names.map((name) => facets[name]);
